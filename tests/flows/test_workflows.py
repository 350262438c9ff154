"""GitHub's workflows: what they may do, that what they call exists, and their scripts, run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.main

from faithbench.cli.app import app
from faithbench.submissions.scaffold import new_submission
from tests.support.repositories import (
    FOLDER,
    NAMES,
    ROOT,
    git,
    put_command,
    scripts,
    shell,
    steps,
    workflow,
)
from tests.support.stores import store

UP = {"aopc": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


def test_these_are_all_and_each_is_a_workflow() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == [f"{name}.yml" for name in NAMES]
    for name in NAMES:
        assert set(workflow(name)) >= {"name", "on", "permissions", "jobs"}
        assert all(("run" in step) != ("uses" in step) for step in steps(name))


@pytest.mark.parametrize("name", NAMES)
def test_tokens_can_only_read_but_for_the_commit(name: str) -> None:
    found = workflow(name)
    assert found["permissions"] == {"contents": "read"}
    more = {job: own["permissions"] for job, own in found["jobs"].items() if "permissions" in own}
    assert more == ({"commit": {"contents": "write"}} if name == "leaderboard" else {})
    for step in steps(name, None if name != "leaderboard" else "measure"):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", NAMES)
def test_no_request_can_write_a_script_or_read_a_secret(name: str) -> None:
    text = (FOLDER / f"{name}.yml").read_text()
    assert "pull_request_target" not in text and "workflow_run" not in text
    assert not re.search(r"\$\{\{[^}]*secrets", text)
    assert not [script for script in scripts(name) if "${{" in script]
    for step in steps(name):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", step["uses"])


def test_the_job_that_can_write_runs_nobodys_code() -> None:
    (script,) = scripts("leaderboard", "commit")
    assert "faithbench submission" not in script and "make" not in script


@pytest.mark.parametrize("name", NAMES)
def test_what_scripts_call_exists(name: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    text = "\n".join(scripts(name))
    if "bash .ci/run" in text:
        text += (ROOT / ".ci" / "run").read_text()
    made = re.findall(r"^\s*make ([a-z]+)", text, flags=re.M)
    called = re.findall(r"bin/faithbench ([a-z]+) ([a-z]+)((?: --[a-z-]+)*)", text)
    assert made and set(made) <= targets
    groups = typer.main.get_command(app).commands
    for group, command, options in called:
        known = groups[group].commands[command]
        there = {option for parameter in known.params for option in parameter.opts}
        assert set(options.split()) <= there
    wanted = {"ci": 1, "leaderboard": 1, "submission": 4}
    assert len(called) == wanted[name]


def test_regenerate_calls_what_exists() -> None:
    text = (ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^regenerate:.*\n((?:\t.*\n)+)", text, flags=re.M)
    called = re.findall(r"faithbench ([a-z]+) ([a-z]+)", recipe)
    assert called == [("submission", "regenerate"), ("leaderboard", "build")]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A clone of the base branch; request 1 is still to be made, in the folder `author`."""
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", "origin.git")
    author = tmp_path / "author"
    git(tmp_path, "clone", "--quiet", "origin.git", "author")
    git(author, "switch", "--quiet", "--create", "main")
    store(author / "leaderboard/records/sst2-bundled/tiny-000000", "lime-11111111", UP)
    (author / "submissions").mkdir()
    for name in ("submissions/.gitkeep", "code.py"):
        (author / name).write_text("")
    (author / ".gitignore").write_text(".venv\n")
    git(author, "add", "--all")
    git(author, "commit", "--quiet", "--message", "base")
    git(author, "push", "--quiet", "origin", "main")
    git(tmp_path, "clone", "--quiet", "origin.git", "base")
    put_command(tmp_path / "base")
    return tmp_path / "base"


def request(base: Path) -> list[str]:
    """Send what the author has as request 1, run the workflow, and return what each step said."""
    author = base.parent / "author"
    git(author, "add", "--all")
    git(author, "commit", "--quiet", "--message", "request")
    git(author, "push", "--quiet", "origin", "HEAD:refs/pull/1/head")
    said = []
    for script in scripts("submission"):
        if script == "make install":
            continue
        done = shell(
            base,
            script,
            BASE=git(base, "rev-parse", "HEAD").strip(),
            HEAD=git(author, "rev-parse", "HEAD").strip(),
            NUMBER="1",
            RUNNER_TEMP=str(base.parent),
            GITHUB_STEP_SUMMARY=str(base.parent / "summary.md"),
        )
        said.append(done.stdout + done.stderr)
        if done.returncode:
            return [*said, "failed"]
    return said


def test_a_submission_is_checked_and_shown(base: Path) -> None:
    new_submission(base.parent / "author" / "submissions", "my-x", "plugin")
    scope, _, check, _ = request(base)
    assert scope == "submissions/my-x\n"
    assert check == "my-x: fine, 0 records\n"
    assert (base.parent / "summary.md").read_text() == (
        "my-x has no record yet: it is measured once it is merged.\n"
    )


def test_a_request_for_code_and_a_submission_is_refused(base: Path) -> None:
    new_submission(base.parent / "author" / "submissions", "my-x", "plugin")
    (base.parent / "author" / "code.py").write_text("changed")
    *_, said, failed = request(base)
    assert failed == "failed" and "touches submissions/my-x and also code.py" in " ".join(
        said.split()
    )
    assert not (base / "submissions" / "my-x").exists()


@pytest.mark.parametrize("kind", ["link", "file", "name"])
def test_what_is_no_submission_is_refused_and_not_taken(base: Path, kind: str) -> None:
    folder = base.parent / "author" / "submissions"
    if kind == "link":
        (folder / "my-x").symlink_to("..")
    elif kind == "file":
        (folder / "x.json").write_text("{}")
    else:
        store(folder / "é" / "records", "mine-11111111", UP)
    said, failed = request(base)
    reasons = {"link": "is a link", "file": "is no file of a", "name": "is not plain ASCII"}
    assert failed == "failed" and reasons[kind] in " ".join(said.split())
    assert [path.name for path in (base / "submissions").iterdir()] == [".gitkeep"]


def test_all_of_the_tree_is_measured_not_the_last_push() -> None:
    text = (FOLDER / "leaderboard.yml").read_text()
    assert "event.before" not in text and "git diff --name-only" not in text


def test_only_records_and_pages_are_committed(base: Path) -> None:
    (script,) = scripts("leaderboard", "commit")
    other = base.parent / "author"
    for name in ("leaderboard/tasks/sst2.md", "submissions/a/records/b/c/d.json", "evil.py"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("new\n")
    git(other, "add", "--all")
    patch = base.parent / "regenerated.patch"
    patch.write_text(git(other, "diff", "--cached", "--binary"))
    done = shell(base, script, RUNNER_TEMP=str(base.parent))
    assert done.returncode == 0, done.stderr
    pushed = git(base, "show", "--name-only", "--format=", "origin/main").split()
    assert pushed == ["leaderboard/tasks/sst2.md", "submissions/a/records/b/c/d.json"]
    patch.write_text("")
    assert shell(base, script, RUNNER_TEMP=str(base.parent)).stdout == "nothing changed\n"

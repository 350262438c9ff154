"""The files that a hosting site or a tool reads: citation, notice, templates, pre-commit."""

from __future__ import annotations

import re
import tomllib

import pytest
import typer.main
import yaml

from faithbench.cli.app import app
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
GITHUB = ROOT / ".github"
TEMPLATES = [GITHUB / "pull_request_template.md", *sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.md"))]


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    assert citation["title"].startswith("faithbench: ") and citation["message"]
    assert citation["authors"] == PROJECT["authors"]


def test_all_is_every_extra_but_that_of_the_tests() -> None:
    extras = PROJECT["optional-dependencies"]
    (line,) = extras["all"]
    names = re.fullmatch(r"faithbench\[(.*)\]", line)
    assert names is not None
    # Tests and the site of the documentation are for those who work on faithbench.
    assert names[1].split(",") == sorted(extras.keys() - {"all", "docs", "test"})


def test_hooks_run_pinned_tools_that_the_tests_bring() -> None:
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert [hook["id"] for hook in hooks] == ["ruff", "ruff-format", "mypy"]
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    for hook in hooks:
        tool = re.match(r"\.venv/bin/(\w+)", hook["entry"])
        assert tool is not None and hook["language"] == "system"
        assert re.search(rf"^{tool[1]}==", pins, flags=re.M)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_commands_and_files_of_templates_exist(path) -> None:
    text = path.read_text(encoding="utf-8")
    commands = re.findall(r"`faithbench ([a-z -]+?)(?: [A-Za-z-]*/?[A-Z]+)?`", text)
    assert commands
    for words in commands:
        command = typer.main.get_command(app)
        for word in words.split():
            command = command.commands[word]  # type: ignore[attr-defined]
    for name in re.findall(r"`(docs/[\w.]+|[A-Z]+\.md)`|see ([A-Z]+\.md)", text):
        assert (ROOT / "".join(name)).exists()
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make (\w+)`", text):
        assert re.search(rf"^{target}:", targets, flags=re.M)

"""The command line: what it loads, and how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from faithbench.records.rows_writer import RowsFile
from tests.support.commands import LIGHT, RUN, Call, Said, complaint, fresh
from tests.support.stores import store


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--help", "Measure how faithful"),
        ("run --help", "--allow-changed-data"),
        ("compare --help", "--metric"),
        ("submission check --help", "--no-model"),
        ("submission new my-x --root .", "written: my-x"),
        ("list tasks", "sst2"),
        ("list explainers", "input-x-gradient"),
        ("list metrics", "faithfulness"),
    ],
)
def test_light_commands_load_nothing_heavy(words: str, expected: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", LIGHT, *words.split()],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in found.stdout and "\x1b" not in found.stdout
    assert found.stdout.splitlines()[-1] == "heavy: [] code: 0"


def test_compare_loads_no_network(tmp_path: Path) -> None:
    """Tests are scipy's; nothing else that is heavy is needed."""
    store(tmp_path / "results", "lime-11111111", {"aopc": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    store(tmp_path / "results", "random-22222222", {"aopc": [0.0] * 6})
    found = subprocess.run(
        [sys.executable, "-c", LIGHT, "compare", "lime", "random", "--task", "sst2"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lime    random   6   0.031        0.031    +1.00" in found.stdout
    assert found.stdout.splitlines()[-1] == "heavy: ['scipy', 'scipy.stats'] code: 0"


def test_compare_says_what_is_missing(call: Call, tmp_path: Path) -> None:
    words = ("compare", "lime", "random", "--task", "sst2")
    assert complaint(call(*words)) == (
        "results folder results does not exist; point --results at the folder that "
        "`faithbench run` wrote to"
    )
    store(tmp_path / "results", "lime-11111111", {"aopc": [0.1] * 6})
    said = complaint(call(*words))
    assert said.startswith("no recorded explainer named 'random'; known: lime (looked in results)")
    assert complaint(call(*words[:2], "--task", "sst2")).startswith("compare needs two explainers")


def test_version_and_no_words(call: Call) -> None:
    assert call("--version") == Said(0, f"faithbench {version('faithbench')}\n", "")
    said = call()
    assert said.code == 2 and "Measure how faithful" in said.out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run", "--task", "sst2"), "Missing option '--explainer' / '-e'"),
        (("run", "--explainer", "random"), "Missing option '--task' / '-t'"),
        ((*RUN[:3], "--task", "sst2", "--limit", "0"), "Invalid value for '--limit'"),
        ((*RUN, "--task", "sst2", "--batch", "none"), "Invalid value for '--batch'"),
        (("explain",), "Missing option '--text'"),
        (("rum",), "No such command 'rum'"),
    ],
)
def test_usage_errors_end_with_2(call: Call, words: tuple[str, ...], hint: str) -> None:
    said = call(*words)
    assert said.code == 2 and said.out == ""
    assert "Usage: " in said.err and "Traceback" not in said.err
    # Typer draws a frame, and colours it where it runs as a GitHub action.
    assert hint in " ".join(re.sub(r"\x1b\[[0-9;]*m|│", " ", said.err).split())


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "faithbench.cli", "--debug", *RUN, "--task", "sst3"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1 and found.stdout == ""
    assert found.stderr.startswith("Traceback (most recent call last):")
    last = found.stderr.splitlines()[-1]
    assert last.endswith("FaithbenchError: no task named 'sst3'; did you mean 'sst2'?")


def test_ctrl_c_before_the_first_example(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faithbench.run.request.load_task", interrupt)
    assert call(*RUN, "--task", "sst2") == Said(
        130, "", "Stopped; finished examples are kept; the same command continues after them.\n"
    )


def interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_ctrl_c_in_a_run_counts_what_is_kept(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*RUN[:3], "--task", "sst2", "--source", "bundled", "--limit", "3", "--batch", "1"]
    words += ["--metrics", "aopc", "--no-human"]
    append, calls = RowsFile.append, []

    def interrupted(self: RowsFile, rows: Sequence[Any]) -> None:
        calls.append(rows)
        if len(calls) == 3:
            raise KeyboardInterrupt
        append(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(RowsFile, "append", interrupted)
        said = call(*words)
    assert (said.code, said.err) == (
        130,
        "Stopped; 2 of 3 examples are kept; the same command continues there.\n",
    )
    assert call(*words).code == 0


@pytest.mark.parametrize(
    ("words", "target", "expected"),
    [
        (
            "compare a b --task sst2",
            "faithbench.records.entrants.find_entrants",
            "nothing is kept; the same command starts from the beginning",
        ),
        (
            "train --task sst2",
            "faithbench.training.recipe.load_splits",
            "the same command continues from the last checkpoint, if one was written",
        ),
        (
            "leaderboard run",
            "faithbench.leaderboard.plan.read_plan",
            "finished examples are kept; the same command continues after them",
        ),
        (
            "leaderboard build",
            "faithbench.leaderboard.build.build_files",
            "nothing is kept; the same command starts from the beginning",
        ),
    ],
)
def test_ctrl_c_elsewhere(
    call: Call, monkeypatch: pytest.MonkeyPatch, words: str, target: str, expected: str
) -> None:
    monkeypatch.setattr(target, interrupt)
    assert call(*words.split()) == Said(130, "", f"Stopped; {expected}.\n")


def test_doctor(call: Call) -> None:
    said = call("doctor")
    assert said.code == 0 and said.err == "" and "\x1b" not in said.out
    for part in ("device", "threads", "torch", version("torch"), "extra bundled", "extra heads"):
        assert part in said.out
    for part in ("sst2", "folder", "hub", "bundled", "yes"):
        assert part in said.out

"""What commands say after Ctrl-C: the truth about what is kept."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from faithbench.records.rows_writer import RowsFile
from tests.support.commands import RUN, Call, Said


def test_ctrl_c_before_the_first_example(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faithbench.run.request.load_task", interrupt)
    assert call(*RUN, "--task", "sst2") == Said(
        130,
        "",
        "Stopped; nothing was computed yet; an earlier run's examples are kept.\n",
    )


def test_ctrl_c_while_the_commands_are_imported() -> None:
    code = (
        "import builtins, faithbench.cli\n"
        "load = builtins.__import__\n"
        "def stopped(name, *rest):\n"
        "    if name == 'typer': raise KeyboardInterrupt\n"
        "    return load(name, *rest)\n"
        "builtins.__import__ = stopped\n"
        "faithbench.cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Stopped; nothing was begun.\n")


def test_ctrl_c_at_the_end_says_that_records_are_written(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faithbench.cli.run.show_examples", interrupt)
    words = [*RUN[:3], "--task", "sst2", "--source", "bundled", "--limit", "2", "--no-human"]
    said = call(*words, "--metrics", "aopc")
    assert said.code == 130
    end = said.err.splitlines()[-1]
    assert end.startswith("Stopped; 1 of 1 records in results") and end.endswith(" are written.")


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
            "submission regenerate --root .",
            "faithbench.submissions.status.needed_records",
            "submissions measured so far keep their records; the same command continues with the "
            "others",
        ),
        (
            "leaderboard build",
            "faithbench.leaderboard.build.build_files",
            "nothing is kept; the same command starts from the beginning",
        ),
    ],
)
def test_ctrl_c_elsewhere(
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: str,
    target: str,
    expected: str,
) -> None:
    (tmp_path / "a-submission").mkdir()
    monkeypatch.setattr(target, interrupt)
    assert call(*words.split()) == Said(130, "", f"Stopped; {expected}.\n")

"""The submissions of this repository: short, checked, and on the board."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.cli.options import PASSED
from faithbench.leaderboard.board import Board
from faithbench.records.passed import read_passed
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.status import needed_records

ROOT = Path(__file__).parents[2]
EXAMPLES = ("example-captum-ig", "example-neighbour-pairs")
N = 60


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_has_one_record_without_a_fault(name: str, tmp_path: Path) -> None:
    found = check_submission(ROOT / "submissions" / name, Checks(None, tmp_path))
    assert (found.records, found.faults) == (1, ())
    passed = read_passed(ROOT / PASSED)
    (needed,) = needed_records(ROOT / "submissions" / name, "sst2", N, None, passed)
    assert needed.current


def test_the_explainer_is_short() -> None:
    code = (ROOT / "submissions" / "example-neighbour-pairs" / "explainer.py").read_text()
    assert len(code.splitlines()) < 25


def test_the_scores_fall_with_the_neighbours() -> None:
    import numpy as np

    from faithbench.explainers.registry import plugins_of_file

    path = ROOT / "submissions" / "example-neighbour-pairs" / "explainer.py"
    (plugin,) = plugins_of_file(path)
    source: dict[str, object] = {}
    # Without the adapter, the method takes the questions' answers as they are.
    exec(path.read_text().replace("@per_example\n", "").replace(f'@explainer("{plugin.name}")', ""),
         source)  # fmt: skip

    class Three:
        tokens = ("a", "b", "c")

    def probs(keep: np.ndarray) -> np.ndarray:
        return keep @ np.array([0.1, 0.2, 0.4])

    scores = source["NeighbourPairs"]()(probs, Three())  # run from its text
    # a: alone .1, nothing at its left, with b .3; b: .2, with a .3, with c .6; c: .4, .6, .4.
    assert scores == pytest.approx([0.5 / 3, 1.1 / 3, 1.4 / 3])


def test_they_are_on_the_board_with_company() -> None:
    data = (ROOT / "leaderboard" / "leaderboard.json").read_text()
    board = Board.model_validate(json.loads(data))
    (table,) = [t for t in board.tables if t.task == "sst2" and t.source == "bundled"]
    assert {e.submission for e in table.entrants} == {None, *EXAMPLES}
    assert table.n == N and len(table.entrants) >= 6
    submitted = [e for e in table.entrants if e.submission]
    assert all(e.forward_equivalents is None and e.seconds is None for e in submitted)

"""Columns of a table: means, tests and ties by hand; kinds of a metric are never mixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.board import Column, Table
from faithbench.leaderboard.build import make_board
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
ZERO = [0.0] * 7
NONE = Path("no-such-folder")


def table_of(folder: Path) -> Table:
    (table,) = make_board(folder, NONE).tables
    return table


def column_of(table: Table, metric: str) -> Column:
    return next(column for column in table.columns if column.metric == metric)


def test_two_explainers_by_hand(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": UP, "lodds": UP, "fi_entropy": UP})
    store(tmp_path, "random-22222222", {"aopc": ZERO, "lodds": [None, *ZERO[1:]], "fi_entropy": UP})
    table = table_of(tmp_path)
    aopc = column_of(table, "aopc")
    assert list(aopc.cells) == ["lime", "random"] and aopc.title == "AOPC"
    lime, random = aopc.cells.values()
    assert lime.mean == pytest.approx(2.85 / 7, abs=1e-9)
    assert (lime.n, lime.skipped, lime.letters, lime.best, lime.tie) == (7, 0, "a", True, False)
    assert (random.mean, random.ci95) == (0.0, (0.0, 0.0))
    assert (random.letters, random.best, random.tie) == ("b", False, False)
    # All seven up: 2 of 128 sign patterns are as extreme, and Holm counts one test.
    (pair,) = aopc.pairs
    assert pair == ("lime", "random", "signed-rank", 7, 0.01562, 0.01562, 1.0, "")
    # Lower is better, one value is missing, and six pairs up are 2 of 64.
    lodds = column_of(table, "lodds")
    assert list(lodds.cells) == ["random", "lime"] and lodds.cells["random"].skipped == 1
    assert lodds.pairs[0][4:7] == (0.03125, 0.03125, -1.0)
    # Neither way is better: nobody is the best, and equal values have no test.
    entropy = column_of(table, "fi_entropy")
    assert not any(cell.best or cell.tie for cell in entropy.cells.values())
    assert entropy.pairs[0].reason == "all differences are zero" and entropy.pairs[0].p is None


def test_ties_of_the_best_are_marked(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": UP})
    store(tmp_path, "deep-22222222", {"aopc": [*UP[:6], 0.7]})
    cells = column_of(table_of(tmp_path), "aopc").cells
    assert (cells["lime"].best, cells["deep"].best, cells["deep"].tie) == (True, False, True)
    assert cells["lime"].letters == cells["deep"].letters == "a"


def test_versions_and_encoders_are_columns_of_their_own(tmp_path: Path) -> None:
    values = {"aopc": UP, "iou_semantic": UP}
    store(tmp_path, "lime-11111111", values, protocol={"encoder": "small"})
    store(tmp_path, "deep-22222222", values, protocol={"encoder": "large"})
    store(tmp_path, "random-33333333", {"aopc": UP}, version=2)
    table = table_of(tmp_path)
    found = {column.metric: list(column.cells) for column in table.columns[:4]}
    assert found == {
        "aopc@1": ["deep", "lime"],
        "aopc@2": ["random"],
        "iou_semantic@1 (large)": ["deep"],
        "iou_semantic@1 (small)": ["lime"],
    }
    assert [column.title for column in table.columns[:2]] == ["AOPC@1", "AOPC@2"]
    store(tmp_path, "lime-44444444", {"aopc": UP}, version=2, seeds=(5,))
    with pytest.raises(FaithbenchError, match="different seeds hold 'aopc' of several versions"):
        make_board(tmp_path, NONE)


def test_the_human_rationale_is_shown_but_not_tested(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": ZERO})
    store(tmp_path, "human-22222222", {"aopc": UP})
    aopc = column_of(table_of(tmp_path), "aopc")
    assert list(aopc.cells) == ["lime", "human"] and aopc.pairs == ()
    human = aopc.cells["human"]
    assert (human.best, human.letters, human.mean) == (False, "", pytest.approx(2.85 / 7, abs=1e-9))
    assert aopc.cells["lime"].best


def test_cost_has_no_tests_and_the_least_is_best(tmp_path: Path) -> None:
    def cost(
        equivalents: float, seconds: float, device: str = "cpu"
    ) -> dict[str, dict[str, object]]:
        return {
            "cost": {"forward_equivalents_per_example": equivalents},
            "timing": {"seconds_median": seconds, "alone": 5},
            "environment": {"device": device},
        }

    store(tmp_path, "lime-11111111", {"aopc": UP}, **cost(100, 0.5))
    store(tmp_path, "deep-22222222", {"aopc": UP}, **cost(3, 0.25))
    store(tmp_path, "fast-33333333", {"aopc": UP}, **cost(3, 0.01, "cuda"))
    store(tmp_path, "human-44444444", {"aopc": UP}, **cost(0, 0.001))
    table = table_of(tmp_path)
    column = column_of(table, "forward_equivalents")
    assert (column.family, column.higher_is_better, column.pairs) == ("speed", False, ())
    assert {label: (c.mean, c.best) for label, c in column.cells.items()} == {
        "deep": (3, True), "fast": (3, True), "lime": (100, False), "human": (0, False),
    }  # fmt: skip
    # Another machine's clock takes no part.
    seconds = column_of(table, "seconds").cells
    assert [label for label, cell in seconds.items() if cell.best] == ["deep"]
    assert (seconds["deep"].n, seconds["deep"].letters) == (5, "")
    assert "peak_memory" not in [c.metric for c in table.columns], "nobody measured it"
    lime = next(entrant for entrant in table.entrants if entrant.label == "lime")
    assert (lime.forward_equivalents, lime.seconds, lime.family) == (100, 0.5, "perturbation")

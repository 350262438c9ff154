"""Ranks over tables by hand: pairs on the tables they share, the line, controls, the tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from faithbench.leaderboard.board import Board, Ranking
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.rankings import counted_tables, mean_rank_test
from faithbench.stats.ranks import critical_difference
from tests.support.stores import store

NONE = ()


def add(
    folder: Path, task: str, means: Mapping[str, float], source: str = "folder", cost: float = 3,
    operator: str = "mask",
) -> None:  # fmt: skip
    """Store explainers on a task, with nearly the same value on all examples."""
    for name, mean in means.items():
        values = {"aopc": [mean + 1e-6 * i for i in range(8)], "sufficiency": [-mean] * 8}
        store(
            folder / task / operator, f"{name}-11111111", values,
            task={"name": task, "source": source, "rationale": "none"},
            cost={"forward_equivalents_per_example": cost + mean},
            protocol={"operator": operator},
        )  # fmt: skip


def ranking_of(board: Board) -> Ranking:
    assert board.ranking is not None
    return board.ranking


def ranks(board: Board) -> dict[str, float]:
    return {row.label: row.rank for row in ranking_of(board).rows}


def test_with_all_in_all_tables_it_is_the_mean_rank(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "late": 0.3})
    add(tmp_path, "two", {"lime": 0.5, "deep": 0.6, "late": 0.3})
    add(tmp_path, "three", {"lime": 0.5, "deep": 0.4, "late": 0.3})
    board = make_board(tmp_path, NONE)
    ranking = ranking_of(board)
    # Lime is 1, 2, 1; deep is 2, 1, 2; late is 3 everywhere.
    assert ranks(board) == pytest.approx({"lime": 4 / 3, "deep": 5 / 3, "late": 3.0})
    assert ranking.rows[2].ci95 == (3, 3) and ranking.rows[0].ci95 == (1, 2)
    assert ranking.tables == ("one", "three", "two")
    labels, tables, test = mean_rank_test(counted_tables(board.tables))
    assert labels == ["deep", "late", "lime"] and len(tables) == 3 and test is not None
    assert test.mean_ranks == pytest.approx((5 / 3, 3, 4 / 3))
    assert test.critical_difference == pytest.approx(critical_difference(3, 3))
    # Friedman: 12 N / k (k + 1) * (sum of squared mean ranks - k (k + 1)^2 / 4) = 14 / 3; df 2.
    assert test.friedman_p == pytest.approx(0.09697, abs=1e-5)


def test_pairs_are_compared_on_the_tables_they_share(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "rare": 0.45})
    add(tmp_path, "two", {"lime": 0.5, "deep": 0.4})
    board = make_board(tmp_path, NONE)
    # Rare: behind lime, ahead of deep on the one table they share.
    assert ranks(board) == pytest.approx({"lime": 1, "rare": 2, "deep": 3})
    # One table has no interval, and a table that others are in does not touch a pair's result.
    assert ranking_of(board).rows[1].ci95 is None
    add(tmp_path, "three", {"lime": 0.5, "other": 0.4})
    assert ranks(make_board(tmp_path, NONE))["rare"] == pytest.approx(2.5), "even with a stranger"


def test_draws_without_a_pairs_tables_leave_it_as_it_is(tmp_path: Path) -> None:
    # Rare is on one table of three; half of the draws do not have it, and lime is still ahead.
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "rare": 0.45})
    for task in ("two", "three"):
        add(tmp_path, task, {"lime": 0.5, "deep": 0.4})
    rows = {row.label: row for row in ranking_of(make_board(tmp_path, NONE)).rows}
    assert rows["lime"].ci95 == (1, 1) and rows["deep"].ci95 == (3, 3)


def test_controls_are_lines_and_never_ranked_nor_tied(tmp_path: Path) -> None:
    for task in ("one", "two"):
        add(tmp_path, task, {"lime": 0.5, "deep": 0.4, "random": 0.1, "first-tokens": 0.45})
    ranking = ranking_of(make_board(tmp_path, NONE))
    assert [row.label for row in ranking.rows] == ["lime", "deep"]
    # Where they would stand: after lime and before deep, and last.
    assert [(row.label, row.rank) for row in ranking.controls] == [
        ("first-tokens", 2.0), ("random", 3.0),
    ]  # fmt: skip
    assert not any(row.tied for row in ranking.controls)
    assert {label for pair in ranking.pairs for label in pair[:2]} == {"lime", "deep"}


def test_below_the_line_is_behind_all_above_it(tmp_path: Path) -> None:
    # `idle` is not better than random on two of its three tables, whatever its sufficiency.
    for task, idle in (("one", 0.1), ("two", 0.1), ("three", 0.9)):
        add(tmp_path, task, {"lime": 0.5, "deep": 0.4, "random": 0.1, "idle": idle})
    ranking = ranking_of(make_board(tmp_path, NONE))
    assert [row.label for row in ranking.rows] == ["lime", "deep"]
    assert [row.label for row in ranking.below] == ["idle"]
    assert not ranking.below[0].tied or ranking.below[0].worse_on


def test_few_tables_cannot_part_anybody_and_the_board_says_so(tmp_path: Path) -> None:
    for task in "abcdef":
        add(tmp_path, task, {"lime": 0.5, "deep": 0.4, "late": 0.3, "random": 0.1})
    ranking = ranking_of(make_board(tmp_path, NONE))
    # Six tables, all one way: the least p is 2 / 2^6, times three pairs.
    assert {pair.p for pair in ranking.pairs} == {0.03125}
    assert ranking.least_p == pytest.approx(3 * 0.03125)
    assert {pair.adjusted for pair in ranking.pairs} == {0.09375}
    # The tests inside the tables part them: no tie.
    assert ranking.rows[1].worse_on == tuple("abcdef") and not ranking.rows[1].tied


def test_a_tie_is_one_that_neither_test_denies(tmp_path: Path) -> None:
    for task, deep in (("one", 0.5), ("two", 0.5), ("three", 0.4)):
        add(tmp_path, task, {"lime": 0.5, "deep": deep, "random": 0.1})
    rows = {row.label: row for row in ranking_of(make_board(tmp_path, NONE)).rows}
    assert rows["deep"].tied and rows["deep"].worse_on == ("three",)
    assert rows["lime"].rank < rows["deep"].rank and not rows["lime"].tied


def test_bundled_tables_and_second_operators_do_not_count(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4})
    add(tmp_path, "one", {"lime": 0.1, "deep": 0.4}, operator="delete")
    add(tmp_path, "two", {"deep": 0.9, "lime": 0.1}, source="bundled")
    board = make_board(tmp_path, NONE)
    assert ranking_of(board).tables == ("one",) and ranks(board) == {"lime": 1, "deep": 2}
    assert [table.id for table in board.tables] == ["one-delete", "one", "two"]


def test_models_of_a_study_stand_beside_the_ranking(tmp_path: Path) -> None:
    """Several networks of one task would weigh more than one, and would rank what they are."""
    for name, model, means in (
        ("own", "bundled:sst2", {"lime": 0.5, "deep": 0.6}),
        ("studied", "sst2-bilstm-softmax-seed0", {"lime": 0.5, "deep": 0.1}),
    ):
        for label, mean in means.items():
            values = {"aopc": [mean + 1e-6 * i for i in range(8)], "sufficiency": [-mean] * 8}
            store(
                tmp_path / name, f"{label}-11111111", values,
                task={"name": "sst2", "source": "folder", "rationale": "none"},
                model={"name": model, "weights_sha256": name[0] * 64},
                cost={"forward_equivalents_per_example": 3.0},
            )  # fmt: skip
    board = make_board(tmp_path, NONE)
    assert len(board.tables) == 2
    assert [table.model for table in counted_tables(board.tables)] == ["bundled:sst2"]
    assert ranks(board) == {"deep": 1.0, "lime": 2.0}
    alone = [table for table in board.tables if table.model != "bundled:sst2"]
    assert counted_tables(alone) == alone, "where there are no others, they count"


def test_pareto_front_by_hand(tmp_path: Path) -> None:
    # Ranks 1, 2 and 3 at costs 3.5, 3.4 and 50.1: one that is more expensive and worse is beaten.
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4})
    add(tmp_path, "one", {"slow": 0.1}, cost=50)
    points = {p.label: p for p in make_board(tmp_path, NONE).pareto}
    assert {label: point.front for label, point in points.items()} == {
        "lime": True, "deep": True, "slow": False,
    }  # fmt: skip
    assert points["slow"].forward_equivalents == 50.1 and points["slow"].faithfulness_rank == 3


def test_explainers_without_a_known_cost_are_left_out_of_the_front(tmp_path: Path) -> None:
    """A cost of nothing would put scores that were made elsewhere on the front."""
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4})
    store(
        tmp_path / "one/mask", "mine-11111111",
        {"aopc": [0.6] * 8, "sufficiency": [-0.6] * 8},
        task={"name": "one", "source": "folder", "rationale": "none"},
        cost={"forward_equivalents_per_example": None},
    )  # fmt: skip
    board = make_board(tmp_path, NONE)
    assert list(ranks(board)) == ["mine", "lime", "deep"]
    assert {p.label: p.front for p in board.pareto} == {"lime": True, "deep": True}

"""Columns of cost: the least is best, within one machine, and nothing is tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faithbench.leaderboard.board import Column, Score, Table
from faithbench.leaderboard.build import make_board
from tests.support.stores import accepted, store

VALUES = {"aopc": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]}


def put(folder: Path, stem: str, equivalents: float | None, seconds: float, **more: Any) -> None:
    store(
        folder,
        stem,
        VALUES,
        seeds=more.get("seeds", (0,)),
        cost={"forward_equivalents_per_example": equivalents},
        timing={"seconds_median": seconds, "seconds_ci95": (seconds, 2 * seconds), "alone": 5},
        environment={"device": more.get("device", "cpu")},
    )


def table_of(folder: Path, submissions: Path | None = None) -> Table:
    (table,) = make_board(folder, accepted(submissions) if submissions else ()).tables
    return table


def column_of(table: Table, metric: str) -> Column:
    return next(column for column in table.columns if column.metric == metric)


def best(scores: dict[str, Score]) -> list[str]:
    return [label for label, score in scores.items() if score.best]


def test_the_least_is_best_and_people_come_last(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", 100, 0.5)
    put(tmp_path, "deep-22222222", 3, 0.25)
    put(tmp_path, "fast-33333333", 3, 0.01)
    put(tmp_path, "human-44444444", 0, 0.001)
    column = column_of(table_of(tmp_path), "forward_equivalents")
    assert (column.family, column.higher_is_better, column.pairs) == ("speed", False, ())
    assert [(label, score.mean) for label, score in column.cells.items()] == [
        ("deep", 3), ("fast", 3), ("lime", 100), ("human", 0),
    ]  # fmt: skip
    assert best(column.cells) == ["deep", "fast"], "and not the human, who is no method"
    # Counted costs are of all examples, measured ones of those that were explained alone.
    assert column.cells["lime"].n == 7 and column.cells["lime"].ci95 is None


def test_clocks_are_compared_within_the_usual_machine(tmp_path: Path) -> None:
    records, submissions = tmp_path / "records", tmp_path / "submissions"
    put(records, "lime-11111111", 100, 0.5)
    put(records, "deep-22222222", 3, 0.25)
    put(records, "fast-33333333", 3, 0.01, device="cuda")
    put(submissions / "mine" / "records", "mine-44444444", 1, 0.02)
    table = table_of(records, submissions)
    seconds = column_of(table, "seconds").cells
    assert list(seconds) == ["fast", "mine", "deep", "lime"] and best(seconds) == ["deep"]
    assert (seconds["deep"].n, seconds["deep"].letters) == (5, "")
    assert seconds["deep"].ci95 == (0.25, 0.5)
    assert best(column_of(table, "forward_equivalents").cells) == ["mine"], "counted alike"
    assert "peak_memory" not in [c.metric for c in table.columns], "measured of none"


def test_costs_of_several_records_are_averaged(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", 100, 0.5)
    put(tmp_path, "lime-22222222", 50, 0.3, seeds=(1,))
    table = table_of(tmp_path)
    (row,) = table.entrants
    assert (row.forward_equivalents, row.seconds, row.seconds_ci95) == (75, 0.4, None)
    assert column_of(table, "seconds").cells["lime"].ci95 is None
    # One record without a cost, and there is no mean over all.
    put(tmp_path, "lime-33333333", None, 0.3, seeds=(2,))
    assert "forward_equivalents" not in [c.metric for c in table_of(tmp_path).columns]


def test_an_unknown_cost_is_shown_last_and_never_best(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", None, 0.5)
    put(tmp_path, "deep-22222222", 2, 0.5)
    scores = column_of(table_of(tmp_path), "forward_equivalents").cells
    assert list(scores) == ["deep", "lime"] and best(scores) == ["deep"]
    assert (scores["lime"].mean, scores["lime"].n) == (None, 0)


def test_a_control_costs_nothing_and_is_not_the_cheapest_method(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", 50, 0.5)
    put(tmp_path, "random-22222222", 0, 0.5)
    scores = column_of(table_of(tmp_path), "forward_equivalents").cells
    assert list(scores) == ["lime", "random"] and best(scores) == ["lime"]

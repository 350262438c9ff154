"""Who has a place in a table: the gate, aspects that count once, blanks, and skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from faithbench.leaderboard.board import Table
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.standings import filled_mean, skills_of
from tests.support.stores import store

NONE = ()
N = 24


def table_of(folder: Path, values: Mapping[str, Mapping[str, Sequence[float | None]]]) -> Table:
    for name, metrics in values.items():
        store(folder / "one", f"{name}-11111111", metrics)
    (table,) = make_board(folder, NONE).tables
    return table


def noisy(mean: float, seed: int, spread: float = 0.05) -> list[float]:
    return (mean + spread * np.random.default_rng(seed).normal(size=N)).round(6).tolist()


def methods() -> dict[str, dict[str, Sequence[float | None]]]:
    return {
        "random": {"aopc": noisy(0.1, 0), "sufficiency": noisy(0.4, 10)},
        "first-tokens": {"aopc": noisy(0.9, 1), "sufficiency": noisy(0.0, 11)},
        "oracle": {"aopc": noisy(0.8, 2), "sufficiency": noisy(0.1, 12)},
        "lime": {"aopc": noisy(0.5, 3), "sufficiency": noisy(0.2, 13)},
        "idle": {"aopc": noisy(0.1, 4), "sufficiency": noisy(0.05, 14)},
        "worse": {"aopc": noisy(-0.2, 5), "sufficiency": noisy(0.2, 15)},
    }


def test_a_planted_oracle_is_first_and_controls_are_never_ranked(tmp_path: Path) -> None:
    table = table_of(tmp_path, methods())
    rows = {row.label: row for row in table.entrants}
    assert [row.label for row in table.entrants] == [
        "oracle", "lime", "idle", "worse", "first-tokens", "random",
    ]  # fmt: skip
    assert rows["oracle"].place == 1 and rows["lime"].place == 2
    assert rows["oracle"].aspects == {"comprehensiveness": 1.0, "sufficiency": 1.0}
    for control in ("random", "first-tokens"):
        assert rows[control].standing == "control" and rows[control].place is None
        for column in table.columns:
            score = column.cells[control]
            assert not score.best and not score.tie and not score.letters
    # The control's AOPC is the highest, and still another is the best.
    aopc = next(column for column in table.columns if column.metric == "aopc")
    assert aopc.cells["oracle"].best and aopc.cells["oracle"].letters == "a"


def test_who_is_not_better_than_random_stands_below_the_line(tmp_path: Path) -> None:
    table = table_of(tmp_path, methods())
    rows = {row.label: row for row in table.entrants}
    for label in ("idle", "worse"):
        assert rows[label].standing == "below" and rows[label].place is None
    # Its sufficiency would be the best: below the line it neither wins nor ties.
    sufficiency = next(column for column in table.columns if column.metric == "sufficiency")
    assert sufficiency.cells["oracle"].best and not sufficiency.cells["idle"].tie


def test_without_random_scores_there_is_no_line(tmp_path: Path) -> None:
    values = {name: own for name, own in methods().items() if name != "random"}
    table = table_of(tmp_path, values)
    standings = {row.label: row.standing for row in table.entrants}
    assert standings["worse"] == "ranked" and standings["first-tokens"] == "control"


def test_an_explainer_without_an_aspect_is_not_ranked_but_can_be_the_best(tmp_path: Path) -> None:
    values = methods()
    values["half"] = {"aopc": [min(value, 1.0) for value in noisy(0.95, 7)]}
    table = table_of(tmp_path, values)
    rows = {row.label: row for row in table.entrants}
    assert rows["half"].standing == "incomplete" and rows["half"].place is None
    assert next(c for c in table.columns if c.metric == "aopc").cells["half"].best


def test_naming_no_token_against_counts_as_nothing_erased(tmp_path: Path) -> None:
    values = methods()
    signs: dict[str, Sequence[float | None]] = {
        "oracle": noisy(-1, 20), "lime": [None] * N, "random": noisy(0.2, 21),
    }  # fmt: skip
    for label, own in signs.items():
        values[label]["delta_log_odds_neg"] = own
    values["odd"] = {
        "aopc": noisy(0.7, 8), "sufficiency": noisy(0.15, 18), "delta_log_odds_neg": noisy(1, 22),
    }  # fmt: skip
    values["random"]["delta_log_odds_neg"] = [None] * N
    table = table_of(tmp_path, values)
    rows = {row.label: row for row in table.entrants}
    sign = next(column for column in table.columns if column.aspect == "sign")
    # Skill counts from nothing erased too: random scores name no token against.
    assert sign.cells["random"].skill == 0 and sign.cells["oracle"].skill == 1
    assert sign.cells["odd"].skill == pytest.approx(-1, abs=0.1)
    ranks = {label: row.aspects.get("sign") for label, row in rows.items() if row.aspects}
    # Tokens whose loss helps, none at all, tokens whose loss hurts.
    assert ranks == {"oracle": 1.0, "lime": 2.0, "odd": 3.0}
    assert filled_mean(-1.0, 3, 1, 0.0) == -0.75 and filled_mean(None, 0, 4, 0.0) == 0.0
    assert filled_mean(0.5, 3, 1, None) == 0.5 and filled_mean(None, 0, 4, None) is None


def test_stability_is_compared_above_the_line_only(tmp_path: Path) -> None:
    values = methods()
    for index, own in enumerate(values.values()):
        own["iou_lexical"] = noisy(0.1 * index, 30 + index, 0.01)
    table = table_of(tmp_path, values)
    column = next(column for column in table.columns if column.metric == "iou_lexical")
    assert {label for pair in column.pairs for label in pair[:2]} == {"oracle", "lime"}
    # Those below have higher values, shown without a mark.
    assert column.cells["lime"].best and column.cells["worse"].mean is not None
    assert not column.cells["worse"].best


def test_effects_are_turned_so_that_plus_is_better(tmp_path: Path) -> None:
    table = table_of(tmp_path, methods())
    for metric in ("aopc", "sufficiency"):
        column = next(column for column in table.columns if column.metric == metric)
        pair = next(p for p in column.pairs if {p.first, p.second} == {"oracle", "lime"})
        assert pair.first == "oracle" and pair.effect > 0.9


def test_skill_is_nought_for_random_and_one_for_the_best() -> None:
    means = {"random": 0.2, "best": 0.6, "half": 0.4, "less": 0.1, "none": None}
    assert skills_of(means, "random", "best", None, True) == pytest.approx(
        {"random": 0, "best": 1, "half": 0.5, "less": -0.25}
    )
    # Lower may be better: the signs cancel.
    lower = {"random": 0.4, "best": 0.1, "x": 0.25}
    assert skills_of(lower, "random", "best", None, False)["x"] == pytest.approx(0.5)
    # Against a perfect explainer's value.
    assert skills_of(means, "random", "best", 1.0, True)["best"] == pytest.approx(0.5)


def test_where_the_best_is_no_better_than_random_there_is_no_skill() -> None:
    means = {"random": 0.2, "best": 0.6}
    assert skills_of(means, None, "best", None, True) == {}
    assert skills_of({"random": 0.2, "best": 0.2}, "random", "best", None, True) == {}
    assert skills_of(means, "random", "best", None, False) == {}

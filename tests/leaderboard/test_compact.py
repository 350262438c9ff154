"""The page's data: every number of the board, in the order of the table's explainers."""

from __future__ import annotations

import json

from faithbench.leaderboard.board import Cell, Pair
from faithbench.leaderboard.compact import overview, table_data
from faithbench.metrics import METRICS
from tests.leaderboard.boards import small_board


def test_cells_are_in_the_order_of_the_explainers() -> None:
    table = small_board().tables[1]
    data = table_data(table)
    labels = [entrant["label"] for entrant in data["entrants"]]
    assert labels == [entrant.label for entrant in table.entrants]
    column = next(c for c in data["columns"] if c["metric"] == "tau_loo")
    source = next(c for c in table.columns if c.metric == "tau_loo")
    for label, short in zip(labels, column["cells"], strict=True):
        cell = source.cells[label]
        assert cell.mean is not None and abs(short[0] - cell.mean) < 1e-5
        assert short[3:6] == [197, 3, cell.letters]
        assert short[6] == (2 if cell.best else 1 if cell.tie else 0)
    assert column["better"] == 1 and column["summary"] == METRICS["tau_loo"].summary


def test_directions_and_versions_of_a_metric_are_kept() -> None:
    table = small_board().tables[0]
    newer = table.columns[1].model_copy(update={"metric": "lodds@2", "version": 2})
    data = table_data(table.model_copy(update={"columns": (newer, *table.columns)}))
    by_name = {column["metric"]: column for column in data["columns"]}
    assert by_name["lodds@2"]["better"] == -1 and by_name["lodds@2"]["version"] == 2
    assert by_name["lodds@2"]["summary"] == METRICS["lodds"].summary
    assert by_name["fi_entropy"]["better"] == 0
    assert by_name["auprc"]["proxy"] is True and by_name["aopc"]["proxy"] is False


def test_an_explainer_without_a_cell_or_a_value() -> None:
    table = small_board().tables[0]
    column = table.columns[0]
    empty = Cell(mean=None, ci95=None, n=0, skipped=9, letters="", best=False, tie=False)
    (first, second, *rest) = (entrant.label for entrant in table.entrants)
    cells = {second: empty, **{label: column.cells[label] for label in rest}}
    one = column.model_copy(update={"cells": cells})
    short = table_data(table.model_copy(update={"columns": (one,)}))["columns"][0]["cells"]
    assert short[0] is None and short[1] == [None, None, None, 0, 9, "", 0]
    assert first not in cells


def test_pairs_are_found_whichever_explainer_comes_first() -> None:
    table = small_board().tables[0]
    a, b, c = (entrant.label for entrant in table.entrants[:3])
    table = table.model_copy(update={"entrants": table.entrants[:3]})
    pairs = (
        Pair(first=b, second=a, test="W", n=9, p=0.0123456, adjusted=0.03, effect=0.5, reason=""),
        Pair(first=a, second=c, test="W", n=9, p=1e-9, adjusted=3e-9, effect=-0.25, reason=""),
        Pair(first=c, second=b, test="", n=5, p=None, adjusted=None, effect=0.0, reason="few"),
    )
    column = table.columns[0].model_copy(update={"pairs": pairs})
    tests = table_data(table.model_copy(update={"columns": (column,)}))["columns"][0]["tests"]
    assert tests == {
        "p": [0.012, 1e-9, None],
        "adjusted": [0.03, 3e-9, None],
        "effect": [-0.5, -0.25, 0.0],
        "test": "W",
        "n": 9,
        "reason": "",
        "other": {"2": ["", 5, "few"]},
    }
    speed = next(c for c in table.columns if c.metric == "seconds")
    assert table_data(table.model_copy(update={"columns": (speed,)}))["columns"][0]["tests"] is None


def test_scores_are_hundredths_and_rationales_places() -> None:
    table = small_board().tables[2]
    shown = table.shown[1].model_copy(
        update={
            "tokens": ("a", "b", "c"),
            "rationale": (True, False, True),
            "scores": {table.entrants[1].label: (0.126, -1.0, 0.0)},
        }
    )
    data = table_data(table.model_copy(update={"shown": (shown,)}))["shown"][0]
    assert data["scores"] == [None, [13, -100, 0], *[None] * 5]
    assert data["rationale"] == [0, 2] and data["right"] is True


def test_overview_ranks_best_first_with_groups_as_places() -> None:
    board = small_board()
    data = overview(board)
    ranking, source = data["rankings"][1], board.rankings[1]
    ranks = [line[1] for line in ranking["lines"]]
    assert ranks == sorted(source.mean_ranks.values()) and len(ranks) == 7
    names = [line[0] for line in ranking["lines"]]
    assert [tuple(names[i : j + 1]) for i, j in ranking["groups"]] == list(source.groups)
    assert ranking["cd"] == 6.2 and ranking["p"] == 3.2e-9
    assert [line[3] for line in data["pareto"]] == [int(p.front) for p in board.pareto]
    assert json.loads(json.dumps(data, allow_nan=False))["records"] == 21

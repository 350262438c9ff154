"""The page of a table: all its numbers, with what they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.leaderboard.board import OperatorPair, Score
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.pages.table_page import table_page
from tests.support.boards import small_board
from tests.support.stores import accepted, store

NONE = ()


def test_a_score_has_mean_interval_letters_and_skipped() -> None:
    table = small_board().tables[1]
    column = table.columns[0]
    scores = {
        "a": Score(mean=0.5, ci95=(0.4, 0.6), n=9, skipped=1, letters="ab", best=True, tie=False),
        "b": Score(mean=0.25, ci95=None, n=9, skipped=0, letters="b", best=False, tie=True),
        "c": Score(mean=None, ci95=None, n=0, skipped=10, letters="", best=False, tie=False),
        "d": Score(mean=None, ci95=None, n=0, skipped=0, letters="", best=False, tie=False),
    }
    column = column.model_copy(update={"cells": scores, "pairs": column.pairs[:2]})
    page = table_page(table.model_copy(update={"columns": (column,)}))
    assert "## Faithfulness\n" in page and "## Speed" not in page
    assert (
        "| explainer | AOPC ↑ |\n| --- | ---: |\n"
        "| a | **.500** [.400, .600] ab (1 skipped) |\n"
        "| b | **.250** b |\n"
        "| c | - (10 skipped) |\n"
        "| d | - |\n"
        "| pairs tested | 2 |\n"
    ) in page


def test_costs_have_their_units_and_no_tests() -> None:
    page = table_page(small_board().tables[1])
    speed = page.split("## Speed\n")[1].split("##")[0]
    assert "pairs tested" not in speed and "No tests; the least is bold." in speed
    assert "peak\\_memory ↓" in speed and " MB" in speed


@pytest.mark.parametrize(("index", "marked"), [(0, True), (1, False)])
def test_bundled_data_and_proxies_are_marked(index: int, marked: bool) -> None:
    page = table_page(small_board().tables[index])
    assert ("**bundled**" in page) is marked and ("**proxy**" in page) is marked


def test_explainers_are_listed_with_package_settings_and_curve() -> None:
    table = small_board().tables[1]
    random = next(row for row in table.entrants if row.label == "random")
    row = random.model_copy(
        update={
            "label": "mine",
            "settings": {"z": 1, "a": True},
            "seeds": (0, 1),
            "submission": "my-entry",
            "curve": (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1),
        }
    )
    without = row.model_copy(update={"settings": {}, "submission": None, "curve": ()})
    page = table_page(table.model_copy(update={"entrants": (row, without)}))
    facts = "control | faithbench 0.1.0"
    link = "[my-entry](../../submissions/my-entry)"
    assert f"| mine | {facts} | a=True, z=1 | 0, 1 | {link} | .500 |\n" in page
    assert f"| mine | {facts} | - | 0, 1 | - | - |\n" in page


def test_the_human_rationale_is_explained_where_it_is(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": [0.1, 0.2]})
    (table,) = make_board(tmp_path, NONE).tables
    assert "`human`" not in table_page(table)
    store(tmp_path, "human-22222222", {"aopc": [0.1, 0.2]})
    (table,) = make_board(tmp_path, NONE).tables
    assert "`human` is the rationale that people marked: a yardstick" in table_page(table)


def test_no_name_of_a_submission_can_leave_its_link(tmp_path: Path) -> None:
    folder = tmp_path / "submissions" / "a) <b>[x](..\\" / "records"
    store(folder, "lime-11111111", {"aopc": [0.1, 0.2]})
    (tmp_path / "records").mkdir()
    (table,) = make_board(tmp_path / "records", accepted(tmp_path / "submissions")).tables
    page = table_page(table)
    assert "](../../submissions/a%29%20%3Cb%3E%5Bx%5D%28..%5C) |" in page and "<b>" not in page


def test_places_aspects_and_skill_stand_first() -> None:
    table = small_board().tables[1]
    page = table_page(table)
    section = page.split("## Places")[1].split("## Faithfulness")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")][2:]
    assert [row[1] for row in rows] == [row.label for row in table.entrants]
    first, control = table.entrants[0], table.entrants[-1]
    assert rows[0][0] == "| 1" and rows[-1][0] == "| *control*"
    assert rows[0][2:5] == [f"{rank:g}" for rank in first.aspects.values()]
    assert rows[-1][2:5] == ["-", "-", "-"] and control.place is None


def test_a_second_operator_is_told_with_its_correlation() -> None:
    table = small_board().tables[1]
    pair = OperatorPair(
        first=table.id, second="other-delete", operators=("mask", "delete"), shared=12,
        kendall=0.6, kendall_best=0.4, kendall_aopc=0.7, leaders=(("lime",), ("deep", "gae")),
    )  # fmt: skip
    page = table_page(table, (pair,))
    assert "erased by mask and by delete: Kendall's tau between the two orders is .60 over" in page
    assert "They do not agree on the first: lime / deep, gae. [The other table](other-del" in page
    assert "Kendall" not in table_page(small_board().tables[2], (pair,))

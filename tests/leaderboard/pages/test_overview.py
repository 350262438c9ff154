"""The first page: the ranking and its tests in words, ranks against cost, a table per task."""

from __future__ import annotations

from faithbench.leaderboard.board import Board, Ranking
from faithbench.leaderboard.pages.overview import overview, short_grid
from tests.support.boards import empty_board, small_board

RANKING = Ranking(
    family="overall",
    over=("agnews/aopc", "agnews/iou_semantic@1 (owner/encoder)", "semeval/aopc"),
    left_out=("late",),
    mean_ranks={"lime": 1.25, "deep": 1.5, "random": 3.0},
    ci95={"lime": (1.0, 2.0), "deep": None, "random": (3.0, 3.0)},
    friedman_p=0.01234,
    critical_difference=1.4567,
    groups=(("lime", "deep"),),
    reason="",
)


def board_of(*rankings: Ranking) -> Board:
    return small_board().model_copy(update={"rankings": rankings})


def test_ranks_stand_with_their_intervals() -> None:
    speed = RANKING.model_copy(update={"family": "speed", "mean_ranks": {"random": 1.0}})
    page = overview(board_of(RANKING, speed))
    assert "| explainer | overall | speed |\n| --- | ---: | ---: |\n" in page
    assert "| lime | 1.25 [1.00, 2.00] | - |\n| deep | 1.50 | - |\n" in page
    assert "| random | 3.00 [3.00, 3.00] | 1.00 [3.00, 3.00] |" in page


def test_the_tables_that_count_are_those_that_rankings_are_over() -> None:
    page = overview(board_of(RANKING))
    assert "explainers that are in all of these tables: agnews, semeval.\n" in page
    assert "**bundled** samples" not in page
    bundled = RANKING.model_copy(update={"over": ("sst2/aopc",)})
    page = overview(board_of(bundled))
    assert "in all of these tables: sst2.\n" in page and "**bundled** samples" in page


def test_results_of_the_tests_are_told() -> None:
    # An encoder's name may hold a slash; it is still one table.
    assert (
        "- overall: 3 metrics of 2 tables; Friedman p = 0.012, critical difference (Nemenyi, .05) "
        "1.46; not different from the first: deep; left out, since not in all of them: late.\n"
    ) in overview(board_of(RANKING))
    without = {"friedman_p": None, "reason": "all ranks are equal", "left_out": ()}
    page = overview(board_of(RANKING.model_copy(update=without)))
    assert "- overall: 3 metrics of 2 tables; no test, all ranks are equal.\n" in page


def test_the_front_is_bold_and_the_cheapest_comes_first() -> None:
    board = small_board()
    lines = overview(board).split("## Faithfulness against cost\n")[1].splitlines()
    labels = [line.split(" | ")[0] for line in lines if line.startswith("| ")][2:9]
    points = sorted(board.pareto, key=lambda p: (p.forward_equivalents, p.faithfulness_rank))
    assert labels == [f"| **{p.label}**" if p.front else f"| {p.label}" for p in points]


def test_a_short_table_has_the_main_metrics_and_marks_some_rows() -> None:
    table = small_board().tables[1]
    head, _, *rows = short_grid(table, {"lrp-mask"}).splitlines()
    assert head.startswith("| explainer | AOPC ↑ | comprehensiveness ↑ | sufficiency ↓ | tau")
    assert "entropy" not in head and "seconds" not in head and "forward\\_equivalents ↓ |" in head
    assert len(rows) == 7 and sum(row.startswith("| → lrp-mask |") for row in rows) == 1
    # Other metrics alone: the first four stand in for the main ones.
    others = [column for column in table.columns if column.family == "stability"][1:]
    assert short_grid(table.model_copy(update={"columns": tuple(others)})).startswith(
        "| explainer | iou\\_lexical ↑ |"
    )


def test_a_board_of_nothing_has_neither_ranking_nor_tables() -> None:
    page = overview(empty_board())
    assert page.startswith("<!-- made by `faithbench leaderboard build`")
    assert "0 tables from 0 records" in page and "##" not in page

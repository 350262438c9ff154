"""Sentences about small boards, whose numbers are known by hand."""

from __future__ import annotations

from typing import Any

from faithbench.leaderboard.board import Board, OperatorPair, RankedRow
from faithbench.leaderboard.findings import findings
from tests.support.boards import empty_board, small_board

FIRST = "attention-x-gradient"


def board_with(**changes: Any) -> Board:
    """Return the small board with other facts of its ranking."""
    board = small_board()
    assert board.ranking is not None
    return board.model_copy(update={"ranking": board.ranking.model_copy(update=changes)})


def rows_of(board: Board) -> tuple[RankedRow, ...]:
    assert board.ranking is not None
    return board.ranking.rows


def pair_of(leaders: tuple[tuple[str, ...], tuple[str, ...]], kendall: float) -> OperatorPair:
    return OperatorPair(
        first="sst2", second="sst2-delete", operators=("mask", "delete"), shared=23,
        kendall=0.7, kendall_best=kendall, kendall_aopc=0.9, leaders=leaders,
    )  # fmt: skip


def test_a_board_without_a_ranking_has_no_findings() -> None:
    assert findings(empty_board()) == []


def test_the_small_board_in_sentences() -> None:
    assert findings(small_board()) == [
        f"{FIRST} is the most faithful of 6 ranked explainers (rank 1.33, 95% interval 1.33 to "
        "1.33): it comes first on 2 of its 2 tables.",
        "Nobody is tied with it: each of the others is significantly worse, over tables or by AOPC "
        "on at least half of its own.",
        "All 6 explainers are better than random scores by AOPC on most tables.",
        "A table can tell two explainers apart whose AOPC differs by .070 (.070 to .070), at the "
        "median and with a chance of 80%: 60% of the pairs differ by more.",
        "No two explainers share enough of the 2 tables for a test over them.",
    ]


def test_ties_are_named_with_their_number_of_tables() -> None:
    rows = rows_of(small_board())
    tied = rows[1].model_copy(update={"tied": True, "tables": ("agnews",)})
    sentences = findings(board_with(rows=(rows[0], tied, *rows[2:])))
    assert sentences[1] == (
        f"{tied.label} (1 table) is tied with it; the other 4 are significantly worse, over tables "
        "or by AOPC on at least half of their own."
    )
    assert sentences[2] == (
        "5 of the 6 were measured on all 2 tables and 1 on one only; every two are compared on the "
        "tables that they share."
    )


def test_those_below_the_line_are_counted_and_a_few_named() -> None:
    rows = rows_of(small_board())
    one = findings(board_with(rows=rows[:5], below=rows[5:]))[2]
    assert one == (
        "1 of 6 explainers stands below the line, not better than random scores by AOPC on most of "
        f"their tables: {rows[5].label}."
    )
    many = findings(board_with(rows=rows[:1], below=rows[1:]))[2]
    names = ", ".join(row.label for row in rows[1:4])
    assert many.startswith("5 of 6 explainers stand ") and many.endswith(f"{names} and 2 more.")


def test_without_random_scores_nobody_is_said_to_be_better_than_them() -> None:
    board = small_board()
    tables = tuple(
        table.model_copy(
            update={"entrants": tuple(r for r in table.entrants if r.name != "random")}
        )
        for table in board.tables
    )
    sentences = findings(board.model_copy(update={"tables": tables}))
    assert not any("random" in sentence for sentence in sentences)


def test_operators_agree_or_do_not() -> None:
    board = small_board()
    same = board.model_copy(update={"operators": (pair_of((("a", "b"), ("b",)), 1.0),)})
    assert findings(same)[3] == (
        "b comes first on sst2 whether tokens are erased by mask or by delete; Kendall's tau of "
        "the two orders is .70 over 23 explainers and 1.00 over the 10 best."
    )
    other = pair_of((("a",), ("b",)), 0.5)
    assert findings(board.model_copy(update={"operators": (other,)}))[3] == (
        "Who comes first on sst2 depends on how tokens are erased: a by mask, b by delete; "
        "Kendall's tau of the two orders is .70 over 23 explainers and .50 over the 10 best, so "
        "that the order of the leaders differs."
    )
    several = board.model_copy(update={"operators": (other, pair_of((("a",), ("a",)), 0.8))})
    assert findings(several)[3] == (
        "On 1 of 2 tables another way of erasing tokens puts another explainer first; Kendall's "
        "tau of the two orders of the 10 best is .50 to .80."
    )


def test_what_tests_over_tables_can_show() -> None:
    assert findings(board_with(least_p=0.3516))[-1] == (
        "2 tables are too few for a test over tables to tell any two explainers apart: after Holm "
        "its p value cannot be less than .35, so that the tests inside tables decide."
    )
    ranking = small_board().ranking
    assert ranking is not None
    tested = [pair._replace(p=0.001, adjusted=0.02) for pair in ranking.pairs[:2]]
    pairs = (tested[0], tested[1]._replace(adjusted=0.2))
    assert findings(board_with(least_p=0.0039, pairs=pairs))[-1] == (
        "Over 2 tables, 1 of 2 pairs of explainers differ significantly (signed ranks; after Holm, "
        "p cannot be less than .0039)."
    )

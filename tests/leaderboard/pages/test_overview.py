"""The first page: the ranking with its lines, findings in words, cost, a table per task."""

from __future__ import annotations

from faithbench.leaderboard.board import Board, RankedRow, Ranking
from faithbench.leaderboard.findings import findings
from faithbench.leaderboard.pages.formatting import markdown
from faithbench.leaderboard.pages.overview import overview, short_grid
from tests.support.boards import empty_board, small_board


def row(label: str, rank: float, **facts: object) -> RankedRow:
    given = {
        "label": label, "rank": rank, "ci95": None, "tables": ("agnews", "semeval"),
        "tied": False, "adjusted": None, "worse_on": (), "skill": 0.5, "stability": None,
        "plausibility": 0.25, "cost": 3.0,
    }  # fmt: skip
    return RankedRow.model_validate({**given, **facts})


RANKING = Ranking(
    tables=("agnews", "semeval"),
    rows=(
        row("lime", 1.25, ci95=(1.0, 2.0), skill=1.0),
        row("deep", 1.5, tied=True),
        row("late", 3.0, worse_on=("agnews",)),
    ),
    below=(row("idle", 4.5, skill=-0.1),),
    controls=(row("first-tokens", 2.0, cost=0.0), row("random", 5.0, skill=0.0)),
    pairs=(),
    least_p=0.5,
)


def board_of(ranking: Ranking) -> Board:
    return small_board().model_copy(update={"ranking": ranking})


def ranking_lines(board: Board) -> list[str]:
    section = overview(board).split("## Faithfulness\n")[1].split("\nRank:")[0]
    return [line for line in section.splitlines() if line.startswith("| ")][2:]


def test_controls_are_lines_where_they_would_stand() -> None:
    assert [line.split(" | ")[:5] for line in ranking_lines(board_of(RANKING))] == [
        ["| 1", "lime", "1.2 [1.0, 2.0]", "2", "**first**"],
        ["| 2", "deep", "1.5", "2", "tied"],
        ["| ", "*first-tokens*", "(2.0)", "2", "*control*"],
        ["| 3", "late", "3.0", "2", "worse on 1 of 2"],
        ["| ", "*random*", "(5.0)", "2", "*control*"],
        ["| ", "idle", "(4.5)", "2", "*not better than random*"],
    ]
    assert ranking_lines(board_of(RANKING))[0].endswith("| 1.00 | - | .25 | 3 |")


def test_findings_come_first() -> None:
    board = board_of(RANKING)
    page = overview(board)
    assert page.index("## Faithfulness") < page.index("records (digest") < page.index("## Tables")
    assert all(f"- {markdown(sentence)}\n" in page for sentence in findings(board))
    assert "**bundled** samples" not in page
    bundled = RANKING.model_copy(update={"tables": ("sst2",)})
    assert "**bundled** samples" in overview(board_of(bundled))


def test_only_the_front_is_listed_by_cost() -> None:
    board = small_board()
    lines = overview(board).split("## Faithfulness against cost\n")[1].split("## Tables")[0]
    labels = [line.split(" | ")[0] for line in lines.splitlines() if line.startswith("| ")][2:]
    points = sorted(board.pareto, key=lambda p: (p.forward_equivalents, p.faithfulness_rank))
    assert labels == [f"| {p.label}" for p in points if p.front]


def test_a_short_table_has_the_main_metrics_and_marks_some_rows() -> None:
    table = small_board().tables[1]
    head, _, *rows = short_grid(table, {"lrp-mask"}).splitlines()
    assert head.startswith("|  | explainer | AOPC ↑ | sufficiency ↓ | delta\\_log\\_odds\\_neg ↓ |")
    assert "entropy" not in head and "seconds" not in head and "forward\\_equivalents ↓ |" in head
    assert len(rows) == 7 and sum("| → lrp-mask |" in row for row in rows) == 1
    assert rows[-1].startswith("| *control* | ") and rows[0].startswith("| 1 | ")
    # Other metrics alone: the first four stand in for the main ones.
    others = [column for column in table.columns if column.family == "stability"][1:]
    assert short_grid(table.model_copy(update={"columns": tuple(others)})).startswith(
        "|  | explainer | iou\\_lexical ↑ |"
    )


def test_each_table_tells_what_it_can_show() -> None:
    assert "Smallest difference that 200 examples show (chance of 80%, after Holm): AOPC .070" in (
        overview(small_board()).replace("\\", "")
    )


def test_a_board_of_nothing_has_neither_ranking_nor_tables() -> None:
    page = overview(empty_board())
    assert page.startswith("<!-- made by `faithbench leaderboard build`")
    assert "0 tables from 0 records" in page and "##" not in page

"""The board's first page in markdown: the ranking, its findings, and a short table per task."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from faithbench.leaderboard.board import Board, Column, RankedRow, Ranking, Table
from faithbench.leaderboard.findings import findings
from faithbench.leaderboard.pages.formatting import (
    MADE,
    bold,
    cost,
    counted,
    grid,
    heading,
    labels_in,
    markdown,
    mean_text,
    number,
    power_line,
    shelved,
)
from faithbench.leaderboard.pages.heads_page import head_tests
from faithbench.leaderboard.pages.heads_page import summary as head_summary
from faithbench.metrics.cost import FORWARD_EQUIVALENTS
from faithbench.metrics.registry import is_headline

CONTROL_LINE = "*control*"
"""What stands in the place of a rank where an explainer only draws a line."""


def overview(board: Board) -> str:
    """Return the first page."""
    return "\n".join(_page_lines(board)) + "\n"


def _page_lines(board: Board) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield "# Leaderboard\n"
    if board.ranking is not None:
        yield from _ranking_section(board, board.ranking)
    yield (
        f"{counted(len(board.tables), 'table')} from {board.records} records "
        f"(digest `{board.digest[:12]}`). "
        "Only like is compared with like: explainers share a table if task, data, examples, "
        "model, protocol and operator are the same. [index.html](index.html) shows the "
        "same with charts and examples, [leaderboard.json](leaderboard.json) has all numbers "
        "([schema](leaderboard.schema.json)), and `tables/` has them for LaTeX. What each number "
        "means: [docs/protocol.md](../docs/protocol.md).\n"
    )
    tests = head_tests(board.tables)
    if tests:
        yield f"[Do syntactic and positional heads matter?](heads.md) {head_summary(tests)}\n"
    if board.pareto:
        yield from _pareto_section(board)
    if board.tables:
        yield "## Tables\n"
        yield (
            "↑ and ↓ say which way is better; the best and those not significantly worse are "
            "bold, and explainers that share a letter are not significantly different. Rows are "
            "in the order of the table's faithfulness ranks; *below*: not better than random; "
            "*control*: never ranked.\n"
        )
    for table in board.tables:
        yield from _table_section(table)


def _ranking_section(board: Board, ranking: Ranking) -> Iterator[str]:
    yield "## Faithfulness\n"
    for sentence in findings(board):
        yield f"- {markdown(sentence)}"
    yield ""
    if all(table.source == "bundled" for table in board.tables if table.id in ranking.tables):
        yield "These are **bundled** samples: they show that it works, and rank nobody.\n"
    headers = ["", "explainer", "rank", "tables", "against the first"]
    headers += ["AOPC skill", "stability", "plausibility", "cost"]
    yield grid(list(_ranking_rows(ranking)), headers, names=2) + "\n"
    yield (
        "Rank: every two explainers are compared on the tables that they share, by each aspect of "
        "faithfulness once (AOPC, sufficiency, sign); the rank is 1 plus the share of comparisons "
        "that each other one wins, with a bootstrap 95% interval over tables. Tied with the first: "
        "significantly worse neither over tables (signed ranks, Holm) nor, by AOPC, on half of its "
        "own. Skill is 0 for random scores and 1 for the best; plausibility is the skill of "
        "agreeing with people's rationales, stability the overlap with neighbours above chance, "
        "each over the tables that have them; cost is in forward equivalents per example. Controls "
        "stand where they would be, unranked.\n"
    )


def _ranking_rows(ranking: Ranking) -> Iterator[list[str]]:
    controls = list(ranking.controls)
    for place, row in enumerate(ranking.rows, start=1):
        while controls and controls[0].rank < row.rank:
            yield _control_cells(controls.pop(0))
        yield [str(place), *_row_cells(row, _against_first(row, place == 1))]
    for control in controls:
        yield _control_cells(control)
    for row in ranking.below:
        yield ["", *_row_cells(row, "*not better than random*", ranked=False)]


def _control_cells(row: RankedRow) -> list[str]:
    label, *texts = _row_cells(row, CONTROL_LINE, ranked=False)
    return ["", f"*{label}*", *texts]


def _row_cells(row: RankedRow, standing: str, *, ranked: bool = True) -> list[str]:
    ends = f" [{row.ci95[0]:.1f}, {row.ci95[1]:.1f}]" if row.ci95 else ""
    rank = f"{row.rank:.1f}{ends}" if ranked else f"({row.rank:.1f})"
    return [
        markdown(row.label),
        rank,
        str(len(row.tables)),
        standing,
        number(row.skill, 2),
        number(row.stability),
        number(row.plausibility, 2),
        cost(FORWARD_EQUIVALENTS.unit, row.cost),
    ]


def _against_first(row: RankedRow, first: bool) -> str:
    """Tell how an explainer compares with the first."""
    if first:
        return "**first**"
    if row.tied:
        return "tied"
    return f"worse on {len(row.worse_on)} of {len(row.tables)}"


def _pareto_section(board: Board) -> Iterator[str]:
    yield "## Faithfulness against cost\n"
    yield (
        "Faithfulness rank, and mean forward equivalents (forward passes plus twice the "
        "backward ones, and passes of other networks by FLOPs) per example. Of these explainers "
        "nobody is both cheaper and more faithful:\n"
    )
    points = sorted(board.pareto, key=lambda p: (p.forward_equivalents, p.faithfulness_rank))
    rows = [
        [
            markdown(point.label),
            f"{point.faithfulness_rank:.1f}",
            cost(FORWARD_EQUIVALENTS.unit, point.forward_equivalents),
        ]
        for point in points
        if point.front
    ]
    yield grid(rows, ["explainer", "faithfulness rank", "forward equivalents"]) + "\n"


def _table_section(table: Table) -> Iterator[str]:
    mark = " (bundled)" if table.source == "bundled" else ""
    yield f"### {markdown(table.title)}{mark}\n"
    accuracy = "" if table.accuracy is None else f", right on {number(table.accuracy)}"
    yield (
        f"{table.n} examples; model {markdown(table.model)}{accuracy}; "
        f"[all metrics, intervals and tests](tasks/{table.id}.md)\n"
    )
    yield f"{short_grid(table)}\n"
    if line := power_line(table, short_columns(table)):
        yield f"{markdown(line)}\n"


def short_columns(table: Table) -> list[Column]:
    """Return the columns of a table's main metrics, or its first four."""
    # A column may be one of several versions of a metric, such as `aopc@2`.
    columns = [column for column in table.columns if is_headline(column.metric.split("@")[0])]
    return columns or list(table.columns[:4])


def short_grid(table: Table, marked: Collection[str] = ()) -> str:
    """Lay out a table's main metrics; explainers that are `marked` have an arrow."""
    columns = short_columns(table)
    rows = [
        [
            _place_text(table, label),
            f"{'→ ' * (label in marked)}{markdown(label)}",
            *(_score_text(c, label) for c in columns),
        ]
        for label in shelved(table, labels_in(columns))
    ]
    headers = ["", "explainer", *(markdown(heading(column)) for column in columns)]
    return grid(rows, headers, names=2)


def _place_text(table: Table, label: str) -> str:
    row = next(row for row in table.entrants if row.label == label)
    if row.place is not None:
        return f"{row.place:g}"
    return f"*{row.standing}*"


def _score_text(column: Column, label: str) -> str:
    score = column.cells.get(label)
    if score is None or score.mean is None:
        return "-"
    texts = (bold(mean_text(column, score), score), score.letters)
    return " ".join(text for text in texts if text)

"""The leaderboard's first page: the ranking, ranks against cost, and a short table per task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from faithbench.leaderboard.board import Board, Column, Ranking, Table
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
)
from faithbench.metrics.cost import FORWARD_EQUIVALENTS
from faithbench.metrics.registry import is_headline


def overview(board: Board) -> str:
    """Return the first page."""
    return "\n".join(_page_lines(board)) + "\n"


def _page_lines(board: Board) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield "# Leaderboard\n"
    yield (
        f"{counted(len(board.tables), 'table')} from {board.records} records "
        f"(digest `{board.digest[:12]}`). "
        "Only like is compared with like: explainers share a table if task, data, examples, "
        "model, protocol and operator are the same. ↑ and ↓ say which way is better; the best and "
        "those not significantly worse are bold. [index.html](index.html) shows the "
        "same with charts and examples, [leaderboard.json](leaderboard.json) has all numbers "
        "([schema](leaderboard.schema.json)), and `tables/` has them for LaTeX.\n"
    )
    if board.rankings:
        yield from _ranking_section(board)
    if board.pareto:
        yield from _pareto_section(board)
    for table in board.tables:
        yield from _table_section(table)


def _ranking_section(board: Board) -> Iterator[str]:
    over = set().union(*(_ranked_tables(ranking) for ranking in board.rankings))
    ranked = [table for table in board.tables if table.id in over]
    yield "## Ranking\n"
    yield (
        "Mean rank over tables, with a bootstrap 95% interval over them; 1 is the best. In each "
        "table explainers are ranked on every metric, then by their mean rank over the metrics of "
        "a family, and overall by their mean rank over the families but speed, which is ranked by "
        "forward equivalents. Ranked are explainers that are in all of these tables: "
        f"{', '.join(markdown(table.id) for table in ranked)}.\n"
    )
    if all(table.source == "bundled" for table in ranked):
        yield "These are **bundled** samples: they show that it works, and rank nobody.\n"
    labels = dict.fromkeys(label for ranking in board.rankings for label in ranking.mean_ranks)
    rows = [
        [markdown(label), *(_rank_text(ranking, label) for ranking in board.rankings)]
        for label in labels
    ]
    yield grid(rows, ["explainer", *(ranking.family for ranking in board.rankings)]) + "\n"
    for ranking in board.rankings:
        yield f"- {_test_line(ranking)}"
    yield ""


def _ranked_tables(ranking: Ranking) -> set[str]:
    """Return the ids of the tables that a ranking is over; ids have no slash, encoders may."""
    return {column.split("/", 1)[0] for column in ranking.over}


def _rank_text(ranking: Ranking, label: str) -> str:
    if label not in ranking.mean_ranks:
        return "-"
    mean, ends = ranking.mean_ranks[label], ranking.ci95[label]
    return f"{mean:.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")


def _test_line(ranking: Ranking) -> str:
    """Write the results of a ranking's tests."""
    metrics = counted(len(ranking.over), "metric")
    line = f"{ranking.family}: {metrics} of {counted(len(_ranked_tables(ranking)), 'table')}"
    if ranking.friedman_p is None or ranking.critical_difference is None:
        line += f"; no test, {ranking.reason}"
    else:
        line += (
            f"; Friedman p = {ranking.friedman_p:.2g}, critical difference (Nemenyi, .05) "
            f"{ranking.critical_difference:.2f}"
        )
        # Groups are sorted, and the first explainer may be in none: then it differs from all.
        best = ranking.groups[0] if ranking.groups else ()
        if best and best[0] == next(iter(ranking.mean_ranks)):
            line += f"; not different from the first: {_listed(best[1:])}"
    if ranking.left_out:
        line += f"; left out, since not in all of them: {_listed(ranking.left_out)}"
    return f"{line}."


def _pareto_section(board: Board) -> Iterator[str]:
    yield "## Faithfulness against cost\n"
    yield (
        "Mean faithfulness rank, and mean forward equivalents (forward passes plus twice the "
        "backward ones) per example, over the same tables. Bold: nobody is both cheaper and more "
        "faithful.\n"
    )
    points = sorted(board.pareto, key=lambda p: (p.forward_equivalents, p.faithfulness_rank))
    rows = [
        [
            f"**{markdown(point.label)}**" if point.front else markdown(point.label),
            f"{point.faithfulness_rank:.2f}",
            cost(FORWARD_EQUIVALENTS.unit, point.forward_equivalents),
        ]
        for point in points
    ]
    yield grid(rows, ["explainer", "faithfulness rank", "forward equivalents"]) + "\n"


def _table_section(table: Table) -> Iterator[str]:
    mark = " (bundled)" if table.source == "bundled" else ""
    yield f"## {markdown(table.title)}{mark}\n"
    accuracy = "" if table.accuracy is None else f", right on {number(table.accuracy)}"
    yield (
        f"{table.n} examples; model {markdown(table.model)}{accuracy}; "
        f"[all metrics, intervals and tests](tasks/{table.id}.md)\n"
    )
    yield f"{short_grid(table)}\n"


def short_grid(table: Table, marked: Collection[str] = ()) -> str:
    """Lay out a table's main metrics; explainers that are `marked` have an arrow."""
    # A column may be one of several versions of a metric, such as `aopc@2`.
    columns = [column for column in table.columns if is_headline(column.metric.split("@")[0])]
    columns = columns or list(table.columns[:4])
    rows = [
        [f"{'→ ' * (label in marked)}{markdown(label)}", *(_score_text(c, label) for c in columns)]
        for label in labels_in(columns)
    ]
    return grid(rows, ["explainer", *(markdown(heading(column)) for column in columns)])


def _score_text(column: Column, label: str) -> str:
    score = column.cells.get(label)
    if score is None or score.mean is None:
        return "-"
    texts = (bold(mean_text(column, score), score), score.letters)
    return " ".join(text for text in texts if text)


def _listed(labels: Sequence[str]) -> str:
    return ", ".join(markdown(label) for label in labels) or "nobody"

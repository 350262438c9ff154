"""The whole board as one HTML page, and its data as the page's scripts read them.

The scripts get arrays instead of objects wherever there are many: names that are repeated a
hundred thousand times would be most of the page. The scripts in `assets/` read these arrays by
position, so that an order here is not to be changed alone.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from faithbench.core.rounding import all_significant, significant
from faithbench.leaderboard.board import (
    Board,
    BoardRow,
    Column,
    Interval,
    Pair,
    Ranking,
    Score,
    ShownExample,
    Table,
)
from faithbench.leaderboard.html.chart_library import chart_library
from faithbench.leaderboard.html.document import asset, document
from faithbench.metrics.registry import METRICS

Json = dict[str, Any]


def board_data(board: Board) -> Json:
    """Return what the page needs before any table is opened."""
    families = {row.label: row.family for table in board.tables for row in table.entrants}
    return {
        "digest": board.digest,
        "records": board.records,
        "explainers": sorted(families.items()),
        "tables": [
            {"id": table.id, "title": table.title, "source": table.source, "n": table.n}
            for table in board.tables
        ],
        "rankings": [_ranking_data(ranking) for ranking in board.rankings],
        "pareto": [
            [p.label, _rounded(p.faithfulness_rank), _rounded(p.forward_equivalents), int(p.front)]
            for p in board.pareto
        ],
    }


def table_data(table: Table) -> Json:
    """Return one table; scores are in the order of its explainers."""
    labels = [row.label for row in table.entrants]
    facts = table.model_dump(exclude={"entrants", "columns", "shown"})
    return {
        "facts": facts,
        "entrants": [_row_data(row) for row in table.entrants],
        "columns": [_column_data(column, labels) for column in table.columns],
        "shown": [_example_data(example, labels) for example in table.shown],
    }


def _ranking_data(ranking: Ranking) -> Json:
    """Return a ranking as lines, best first, and groups as the first and last line of each."""
    order = sorted(ranking.mean_ranks, key=lambda label: (ranking.mean_ranks[label], label))
    line = {label: index for index, label in enumerate(order)}
    return {
        "family": ranking.family,
        "over": ranking.over,
        "leftOut": ranking.left_out,
        "lines": [
            [label, _rounded(ranking.mean_ranks[label]), *_rounded_ends(ranking.ci95.get(label))]
            for label in order
        ],
        "p": _rounded(ranking.friedman_p),
        "cd": _rounded(ranking.critical_difference),
        "groups": [
            [min(line[label] for label in group), max(line[label] for label in group)]
            for group in ranking.groups
        ],
        "reason": ranking.reason,
    }


def _row_data(row: BoardRow) -> Json:
    return {
        "label": row.label,
        "family": row.family,
        "from": f"{row.package} {row.version}",
        "settings": [f"{key} = {value}" for key, value in sorted(row.settings.items())],
        "seeds": len(row.seeds),
        "submission": row.submission,
        "cost": _rounded(row.forward_equivalents),
        "curve": [round(value, 4) for value in row.curve],
    }


def _column_data(column: Column, labels: list[str]) -> Json:
    # `aopc@2` is the metric `aopc` in its second version.
    metric = METRICS.get(column.metric.split("@")[0])
    return {
        "metric": column.metric,
        "title": column.title,
        "family": column.family,
        "better": {True: 1, False: -1, None: 0}[column.higher_is_better],
        "version": column.version,
        "proxy": column.proxy,
        "summary": metric.summary if metric else "",
        "cells": [_score_data(column.cells.get(label)) for label in labels],
        "tests": _test_data(column.pairs, labels),
    }


def _score_data(score: Score | None) -> list[Any] | None:
    """Return mean, ends of the interval, n, skipped, letters, and 2 for best or 1 for its tie."""
    if score is None:
        return None
    mark = 2 if score.best else int(score.tie)
    ends = _rounded_ends(score.ci95)
    return [_rounded(score.mean), *ends, score.n, score.skipped, score.letters, mark]


def _test_data(pairs: tuple[Pair, ...], labels: list[str]) -> Json | None:
    """Return p, adjusted p and effect of all pairs (0, 1), (0, 2), ... of the table's explainers.

    The effect is positive where the earlier explainer's values are higher. Test, n and reason
    are given once, as most pairs have them; `other` has those of the pairs that differ.
    """
    if not pairs:
        return None
    # The board orders a pair by the means of its column, the page by the rows of its table.
    indices = {pair: index for index, pair in enumerate(combinations(labels, 2))}
    usual, _ = Counter((pair.test, pair.n, pair.reason) for pair in pairs).most_common(1)[0]
    p_values, adjusted_ps, effects = (_empty(len(indices)) for _ in range(3))
    other = {}
    for first, second, test, n, p, adjusted, effect, reason in pairs:
        sign = 1 if (first, second) in indices else -1
        index = indices[first, second] if sign > 0 else indices[second, first]
        p_values[index], adjusted_ps[index] = p, adjusted
        effects[index] = sign * round(effect, 2)
        if (test, n, reason) != usual:
            other[index] = [test, n, reason]
    return {
        "p": all_significant(p_values, 2),
        "adjusted": all_significant(adjusted_ps, 2),
        "effect": effects,
        **dict(zip(("test", "n", "reason"), usual, strict=True)),
        "other": {str(index): other[index] for index in sorted(other)},
    }


def _empty(size: int) -> list[float | None]:
    return [None] * size


def _example_data(example: ShownExample, labels: list[str]) -> Json:
    """Return an example; scores are hundredths of the strongest."""
    return {
        "id": example.id,
        "tokens": example.tokens,
        "said": example.said,
        "truth": example.truth,
        "right": example.right,
        "probability": round(example.probability, 3),
        "scores": [
            [round(100 * score) for score in example.scores[label]]
            if label in example.scores
            else None
            for label in labels
        ],
        "rationale": [index for index, marked in enumerate(example.rationale) if marked],
    }


def _rounded_ends(interval: Interval | None) -> list[float | None]:
    return [None, None] if interval is None else [_rounded(end) for end in interval]


def _rounded(value: float | None) -> float | None:
    """Round to what a page can show: no reader sees more than five digits."""
    return None if value is None else significant(value, 5)


SCRIPTS = (
    "dom",
    "state",
    "controls",
    "charts",
    "diagram",
    "ranking",
    "cells",
    "results",
    "curves",
    "cost",
    "tests",
    "viewer",
    "main",
)
"""The page's own scripts, in the order in which they build on each other."""


def render_page(board: Board) -> str:
    """Return the whole page as HTML; the same board gives the same text."""
    page_script = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    tables = {f"table-{i}": table_data(table) for i, table in enumerate(board.tables)}
    return document(
        title="faithbench leaderboard",
        style=asset("base.css") + asset("page.css"),
        body=asset("page.html"),
        data={"board": board_data(board), **tables},
        # The page's own script comes first: its tables need not wait for the charts.
        scripts=(page_script, chart_library()),
    )

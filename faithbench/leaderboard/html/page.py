"""A board as the page's script reads it: short arrays instead of names said again and again."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

from faithbench.core.rounding import all_significant, significant
from faithbench.leaderboard.board import (
    Board,
    BoardRow,
    Column,
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


def overview(board: Board) -> Json:
    """Return what the page needs before any table is opened."""
    families = {e.label: e.family for table in board.tables for e in table.entrants}
    return {
        "digest": board.digest,
        "records": board.records,
        "explainers": sorted(families.items()),
        "tables": [
            {"id": table.id, "title": table.title, "source": table.source, "n": table.n}
            for table in board.tables
        ],
        "rankings": [_ranking(ranking) for ranking in board.rankings],
        "pareto": [
            [p.label, _short(p.faithfulness_rank), _short(p.forward_equivalents), int(p.front)]
            for p in board.pareto
        ],
    }


def table_data(table: Table) -> Json:
    """Return one table; cells and scores are in the order of its explainers."""
    labels = [entrant.label for entrant in table.entrants]
    facts = table.model_dump(exclude={"entrants", "columns", "shown"})
    return {
        "facts": facts,
        "entrants": [_entrant(entrant) for entrant in table.entrants],
        "columns": [_column(column, labels) for column in table.columns],
        "shown": [_shown(shown, labels) for shown in table.shown],
    }


def _ranking(ranking: Ranking) -> Json:
    """Return a ranking as lines, best first, and groups as the first and last line of each."""
    order = sorted(ranking.mean_ranks, key=lambda label: (ranking.mean_ranks[label], label))
    place = {label: i for i, label in enumerate(order)}
    return {
        "family": ranking.family,
        "over": ranking.over,
        "leftOut": ranking.left_out,
        "lines": [
            [label, _short(ranking.mean_ranks[label]), *_ends(ranking.ci95.get(label))]
            for label in order
        ],
        "p": _short(ranking.friedman_p),
        "cd": _short(ranking.critical_difference),
        "groups": [
            [min(place[one] for one in group), max(place[one] for one in group)]
            for group in ranking.groups
        ],
        "reason": ranking.reason,
    }


def _entrant(entrant: BoardRow) -> Json:
    return {
        "label": entrant.label,
        "family": entrant.family,
        "from": f"{entrant.package} {entrant.version}",
        "settings": [f"{key} = {value}" for key, value in sorted(entrant.settings.items())],
        "seeds": len(entrant.seeds),
        "submission": entrant.submission,
        "cost": _short(entrant.forward_equivalents),
        "curve": [round(value, 4) for value in entrant.curve],
    }


def _column(column: Column, labels: list[str]) -> Json:
    known = METRICS.get(column.metric.split("@")[0])
    return {
        "metric": column.metric,
        "title": column.title,
        "family": column.family,
        "better": {True: 1, False: -1, None: 0}[column.higher_is_better],
        "version": column.version,
        "proxy": column.proxy,
        "summary": known.summary if known else "",
        "cells": [_cell(column.cells.get(label)) for label in labels],
        "tests": _tests(column.pairs, labels),
    }


def _cell(cell: Score | None) -> list[Any] | None:
    """Return mean, ends of the interval, n, skipped, letters, and 2 for best or 1 for its tie."""
    if cell is None:
        return None
    rank = 2 if cell.best else int(cell.tie)
    return [_short(cell.mean), *_ends(cell.ci95), cell.n, cell.skipped, cell.letters, rank]


def _tests(pairs: tuple[Pair, ...], labels: list[str]) -> Json | None:
    """Return p, adjusted p and effect of all pairs (0, 1), (0, 2), ... of the table's explainers.

    The effect is positive where the earlier explainer's values are higher. What most tests share
    is said once; `other` has the name, n and reason of those that differ.
    """
    if not pairs:
        return None
    places = {pair: place for place, pair in enumerate(combinations(labels, 2))}
    usual, _ = Counter((pair.test, pair.n, pair.reason) for pair in pairs).most_common(1)[0]
    ps, after, effects = _empty(len(places)), _empty(len(places)), _empty(len(places))
    other = {}
    for first, second, test, n, p, adjusted, effect, reason in pairs:
        sign = 1 if (first, second) in places else -1
        place = places[first, second] if sign > 0 else places[second, first]
        ps[place], after[place], effects[place] = p, adjusted, sign * round(effect, 2)
        if (test, n, reason) != usual:
            other[place] = [test, n, reason]
    return {
        "p": all_significant(ps, 2),
        "adjusted": all_significant(after, 2),
        "effect": effects,
        **dict(zip(("test", "n", "reason"), usual, strict=True)),
        "other": {str(place): other[place] for place in sorted(other)},
    }


def _empty(size: int) -> list[float | None]:
    return [None] * size


def _shown(shown: ShownExample, labels: list[str]) -> Json:
    """Return an example; scores are hundredths of the strongest."""
    return {
        "id": shown.id,
        "tokens": shown.tokens,
        "said": shown.said,
        "truth": shown.truth,
        "right": shown.right,
        "probability": round(shown.probability, 3),
        "scores": [
            [round(100 * score) for score in shown.scores[label]] if label in shown.scores else None
            for label in labels
        ],
        "rationale": [i for i, marked in enumerate(shown.rationale) if marked],
    }


def _ends(interval: tuple[float, float] | None) -> list[float | None]:
    return [None, None] if interval is None else [_short(end) for end in interval]


def _short(value: float | None, digits: int = 5) -> float | None:
    return None if value is None else significant(value, digits)


SCRIPTS = (
    "dom", "state", "controls", "charts", "diagram", "ranking", "cells", "results", "curves",
    "cost", "tests", "viewer", "main",
)  # fmt: skip
"""The page's own scripts, in the order in which they build on each other."""


def render_page(board: Board) -> str:
    """Return the whole page as HTML; the same board gives the same text."""
    own = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    tables = {f"table-{i}": table_data(table) for i, table in enumerate(board.tables)}
    return document(
        title="faithbench leaderboard",
        style=asset("base.css") + asset("page.css"),
        body=asset("page.html"),
        data={"board": overview(board), **tables},
        # The page's own script comes first: its tables need not wait for the charts.
        scripts=(own, chart_library()),
    )

"""The whole board as one HTML page, and its data as the page's scripts read them.

The scripts get arrays instead of objects wherever there are many: names that are repeated a
hundred thousand times would be most of the page. The scripts in `assets/` read these arrays by
position, so that an order here is not to be changed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from typing import Any

from faithbench.core.rounding import all_significant, significant
from faithbench.leaderboard.board import (
    Board,
    BoardRow,
    Column,
    Interval,
    OperatorPair,
    Pair,
    RankedRow,
    Ranking,
    Score,
    ShownExample,
    Table,
)
from faithbench.leaderboard.findings import findings
from faithbench.leaderboard.html.chart_library import chart_library
from faithbench.leaderboard.html.document import asset, digest_source, document, embedded
from faithbench.leaderboard.rankings import USUAL_OPERATOR
from faithbench.metrics.kinds import ASPECTS
from faithbench.metrics.registry import METRICS

Json = dict[str, Any]


def board_data(board: Board) -> Json:
    """Return what the page needs before any table is opened."""
    families = {row.label: row.family for table in board.tables for row in table.entrants}
    places = {table.id: index for index, table in enumerate(board.tables)}
    return {
        "digest": board.digest,
        "records": board.records,
        "explainers": sorted(families.items()),
        "tables": [
            {"id": table.id, "title": table.title, "source": table.source, "n": table.n}
            for table in board.tables
        ],
        "aspects": ASPECTS,
        "metrics": _metrics_data(board.tables),
        "opens": _opening_table(board.tables),
        "findings": findings(board),
        "ranking": _ranking_data(board.ranking, places) if board.ranking else None,
        "operators": [_operator_data(pair, places) for pair in board.operators],
        "pareto": [
            [p.label, _rounded(p.faithfulness_rank), _rounded(p.forward_equivalents), int(p.front)]
            for p in board.pareto
        ],
    }


def _metrics_data(tables: Sequence[Table]) -> list[Json]:
    """Return what each metric means, once for all tables that have it."""
    seen: dict[str, Column] = {}
    for table in tables:
        for column in table.columns:
            seen.setdefault(column.metric, column)
    return [
        {
            "metric": column.metric,
            "title": column.title,
            "family": column.family,
            "better": _better(column),
            "version": column.version,
            "summary": _summary(column),
        }
        for column in seen.values()
    ]


def _better(column: Column) -> int:
    return {True: 1, False: -1, None: 0}[column.higher_is_better]


def _summary(column: Column) -> str:
    # `aopc@2` is the metric `aopc` in its second version.
    metric = METRICS.get(column.metric.split("@")[0])
    return metric.summary if metric else ""


def _opening_table(tables: Sequence[Table]) -> int:
    """Return the place of the table that a reader sees first: sst2, else the first real one."""
    # The usual operator comes first: its table is the one that counts.
    real = sorted(
        (index for index, table in enumerate(tables) if table.source != "bundled"),
        key=lambda index: (tables[index].task != "sst2", tables[index].operator != USUAL_OPERATOR),
    )
    return next(iter(real), 0)


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


def _ranking_data(ranking: Ranking, places: Mapping[str, int]) -> Json:
    """Return the ranking; tables are told by their places."""
    return {
        "tables": [places[name] for name in ranking.tables],
        "leastP": _rounded(ranking.least_p),
        "rows": [_ranked_row_data(row, places) for row in ranking.rows],
        "below": [_ranked_row_data(row, places) for row in ranking.below],
        "controls": [_ranked_row_data(row, places) for row in ranking.controls],
    }


def _ranked_row_data(row: RankedRow, places: Mapping[str, int]) -> Json:
    return {
        "label": row.label,
        "rank": _rounded(row.rank),
        "ends": _rounded_ends(row.ci95),
        "tables": len(row.tables),
        "tied": row.tied,
        "adjusted": _rounded(row.adjusted),
        "worseOn": [places[name] for name in row.worse_on],
        "skill": _rounded(row.skill),
        "stability": _rounded(row.stability),
        "plausibility": _rounded(row.plausibility),
        "cost": _rounded(row.cost),
    }


def _operator_data(pair: OperatorPair, places: Mapping[str, int]) -> Json:
    return {
        "tables": [places[pair.first], places[pair.second]],
        "operators": pair.operators,
        "shared": pair.shared,
        "kendall": _rounded(pair.kendall),
        "kendallBest": _rounded(pair.kendall_best),
        "leaders": pair.leaders,
    }


def _row_data(row: BoardRow) -> Json:
    return {
        "label": row.label,
        "family": row.family,
        "from": f"{row.package} {row.version}",
        "settings": [f"{key} = {value}" for key, value in sorted(row.settings.items())],
        "seeds": len(row.seeds),
        "submission": row.submission,
        "standing": row.standing,
        "place": _rounded(row.place),
        "aspects": [_rounded(row.aspects.get(aspect)) for aspect in ASPECTS],
        "cost": _rounded(row.forward_equivalents),
        "curve": [round(value, 4) for value in row.curve],
    }


def _column_data(column: Column, labels: list[str]) -> Json:
    return {
        "metric": column.metric,
        "title": column.title,
        "family": column.family,
        "better": _better(column),
        "proxy": column.proxy,
        # Which aspect the table ranks by this column, as a place in the lists of aspects.
        "aspect": ASPECTS.index(column.aspect) if column.ranked and column.aspect else None,
        "power": column.power and [_rounded(column.power.detectable), column.power.separated],
        "cells": [_score_data(column.cells.get(label)) for label in labels],
        "tests": _test_data(column.pairs, labels),
    }


def _score_data(score: Score | None) -> list[Any] | None:
    """Return mean, ends of its interval, n, skipped, letters, 2 for best or 1 for a tie, skill."""
    if score is None:
        return None
    mark = 2 if score.best else int(score.tie)
    ends = _rounded_ends(score.ci95)
    return [
        _rounded(score.mean),
        *ends,
        score.n,
        score.skipped,
        score.letters,
        mark,
        _rounded(score.skill),
    ]


def _test_data(pairs: tuple[Pair, ...], labels: list[str]) -> Json | None:
    """Return p, adjusted p and effect of all pairs (0, 1), (0, 2), ... of the table's explainers.

    The effect is positive where the earlier explainer is better. Test, n and reason are given
    once, as most pairs have them; `other` has those of the pairs that differ.
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
    "links",
    "controls",
    "charts",
    "ranking",
    "cells",
    "results",
    "curves",
    "labels",
    "cost",
    "tests",
    "viewer",
    "main",
)
"""The page's own scripts, in the order in which they build on each other."""


def table_json(table: Table) -> str:
    """Return one table as the page reads it, inside or from a file beside it."""
    return embedded(table_data(table))


def render_page(
    board: Board,
    title: str = "faithbench leaderboard",
    beside: Mapping[str, str] | None = None,
    *,
    ranking: bool = True,
) -> str:
    """Return the whole page as HTML; the same board gives the same text.

    The tables are inside, or `beside` the page in files, named here with their content. The page
    then loads each when it is opened, and only if its digest is that of this content. Browsers
    load no files for a page that was opened from a disk: such a page has to be served. Without a
    `ranking`, the page opens with the results.
    """
    *parts, start = SCRIPTS
    names = (*parts, start) if ranking else (*parts, "report", start)
    page_script = "\n".join(asset(f"{name}.js") for name in names)
    data: dict[str, object] = {"board": board_data(board)}
    if beside:
        data["files"] = [[name, digest_source(text)] for name, text in beside.items()]
    else:
        data |= {f"table-{i}": table_data(table) for i, table in enumerate(board.tables)}
    return document(
        title=title,
        style=asset("base.css") + asset("page.css"),
        body=asset("page.html").replace("<h1>faithbench leaderboard", f"<h1>{escape(title)}"),
        data=data,
        # The page's own script comes first: its tables need not wait for the charts.
        scripts=(page_script, chart_library()),
        fetches=bool(beside),
    )

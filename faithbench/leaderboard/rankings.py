"""Explainers ranked over all tables: by family and overall, and faithfulness against cost.

Within a table, explainers are ranked on each metric, then by their mean rank over the metrics of
a family, then by their mean rank over the families: so every table counts once, and the ranks that
are averaged over tables are those that Friedman's test is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from faithbench.core.rounding import decimals, significant
from faithbench.core.types import Floats
from faithbench.leaderboard.board import Column, Interval, ParetoPoint, Ranking, Table
from faithbench.metrics.registry import FAMILIES, Family
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.ranks import average_ranks, rank_test
from faithbench.stats.summaries import bootstrap

SHARE = 0.9
"""A metric is ranked in a table where so many of its explainers have a value."""
COST = "forward_equivalents"
"""What speed is ranked by: every machine counts it alike."""


@dataclass(frozen=True)
class Field:
    """What one family's ranking is made of: for each table the columns that are ranked."""

    family: Family
    columns: dict[str, tuple[Column, ...]]

    def labels(self, everyone: set[str]) -> list[str]:
        """Return those of all explainers who have a value in all of these columns, by name."""
        every = [column for columns in self.columns.values() for column in columns]
        return sorted(everyone.intersection(*(_valued(column) for column in every)))

    def ranks(self, table: str, labels: Sequence[str]) -> list[float]:
        """Rank explainers in one table by their mean rank over its columns."""
        rows = [
            average_ranks([_mean(column, label) for label in labels], bool(column.higher_is_better))
            for column in self.columns[table]
        ]
        return average_ranks([fmean(ranks) for ranks in zip(*rows, strict=True)], False)


def rankings_of(tables: Sequence[Table]) -> tuple[Ranking, ...]:
    """Return the overall ranking and one per family, of the tables that count.

    Speed has no part in the overall one: there, drawing at random would win. The Pareto view
    sets cost against faithfulness.
    """
    counted = counted_tables(tables)
    fields = [field for family in FAMILIES if (field := _field(family, counted)).columns]
    if not fields:
        return ()
    everyone = {label for table in counted for label in ranked_labels(table)}
    judged = [field for field in fields if field.family != "speed"] or fields
    shared = sorted(set.intersection(*(set(field.labels(everyone)) for field in judged)))
    overall = _overall(judged, [t.id for t in counted], shared)
    over = [row for field in judged for row in _over(field)]
    found = [_ranking("overall", over, shared, overall, everyone)]
    for field in fields:
        labels = field.labels(everyone)
        rows = [field.ranks(table, labels) for table in field.columns] if labels else []
        found.append(_ranking(field.family, _over(field), labels, rows, everyone))
    return tuple(ranking for ranking in found if ranking.mean_ranks)


def counted_tables(tables: Sequence[Table]) -> list[Table]:
    """Return the tables to rank over: of real data if there are any, and with enough in common.

    Only explainers in all of them are ranked, so that a table with few would leave out the
    others. Tables join one by one, whoever shares most explainers with those before; counted are
    so many that tables times shared explainers are most, and of equals the more tables.
    """
    real = [table for table in tables if table.source != "bundled"] or list(tables)
    own = {table.id: set(ranked_labels(table)) for table in real}
    shared = set().union(*own.values())
    joined: list[str] = []
    sizes: list[int] = []
    while len(joined) < len(own):
        waiting = sorted(own.keys() - joined)
        joined.append(max(waiting, key=lambda name: len(own[name] & shared)))
        shared &= own[joined[-1]]
        sizes.append(len(joined) * len(shared))
    count = max(range(len(sizes)), key=lambda k: (sizes[k], k), default=-1) + 1
    return [table for table in real if table.id in joined[:count]]


def ranked_labels(table: Table) -> list[str]:
    """Return all of a table but the human rationale, which is no method."""
    return [entrant.label for entrant in table.entrants if entrant.name != "human"]


def pareto_of(tables: Sequence[Table], rankings: Sequence[Ranking]) -> tuple[ParetoPoint, ...]:
    """Set mean faithfulness ranks against mean costs, over the same tables.

    Who has no known cost is left out.
    """
    found = next((r.mean_ranks for r in rankings if r.family == "faithfulness"), {})
    spent: dict[str, list[float | None]] = {label: [] for label in found}
    for table in counted_tables(tables):
        for entrant in table.entrants:
            if entrant.label in spent:
                spent[entrant.label].append(entrant.forward_equivalents)
    costs = {
        label: fmean(cost for cost in own if cost is not None)
        for label, own in spent.items()
        if None not in own
    }
    ranks = {label: rank for label, rank in found.items() if label in costs}

    def beaten(label: str) -> bool:
        rank, cost = ranks[label], costs[label]
        return any(
            ranks[other] <= rank and costs[other] <= cost and (ranks[other], costs[other])
            != (rank, cost)
            for other in ranks
        )  # fmt: skip

    return tuple(
        ParetoPoint(
            label=label,
            faithfulness_rank=rank,
            forward_equivalents=decimals(costs[label]),
            front=not beaten(label),
        )
        for label, rank in ranks.items()
    )


def _field(family: Family, tables: Sequence[Table]) -> Field:
    columns = {table.id: _ranked_columns(table, family) for table in tables}
    marked_by_people = any(not c.proxy for own in columns.values() for c in own)
    kept = {
        table: tuple(c for c in own if not (c.proxy and marked_by_people))
        for table, own in columns.items()
    }
    return Field(family, {table: own for table, own in kept.items() if own})


def _ranked_columns(table: Table, family: Family) -> list[Column]:
    own = [c for c in table.columns if c.family == family and c.higher_is_better is not None]
    if family == "speed":
        own = [column for column in own if column.metric == COST]
    fewest = SHARE * len(ranked_labels(table))
    methods = set(ranked_labels(table))
    return [column for column in own if len(_valued(column) & methods) >= max(1, fewest)]


def _valued(column: Column) -> set[str]:
    return {label for label, cell in column.cells.items() if cell.mean is not None}


def _mean(column: Column, label: str) -> float:
    mean = column.cells[label].mean
    assert mean is not None, "only those with a value are ranked"
    return mean


def _over(field: Field) -> list[str]:
    return [f"{table}/{c.metric}" for table, columns in field.columns.items() for c in columns]


def _overall(
    fields: Sequence[Field], tables: Sequence[str], labels: Sequence[str]
) -> list[list[float]]:
    """Rank explainers in each table by their mean rank over its families."""
    found = []
    for table in tables if labels else ():
        rows = [field.ranks(table, labels) for field in fields if table in field.columns]
        if rows:
            means = [fmean(ranks) for ranks in zip(*rows, strict=True)]
            found.append(average_ranks(means, False))
    return found


def _ranking(
    family: Family | str,
    over: Sequence[str],
    labels: Sequence[str],
    rows: Sequence[Sequence[float]],
    everyone: set[str],
) -> Ranking:
    """Average the ranks of all tables, and test them."""
    test = rank_test(rows, [False] * len(rows)) if rows else None
    means = dict(zip(labels, test.mean_ranks, strict=True)) if test else {}
    order = sorted(means, key=lambda label: (means[label], label))
    intervals = dict(zip(labels, _intervals(np.array(rows)), strict=True)) if test else {}
    gap, p = (test.critical_difference, test.friedman_p) if test else (None, None)
    return Ranking.model_validate(
        {
            "family": family,
            "over": tuple(over),
            "left_out": tuple(sorted(everyone - set(labels))),
            "mean_ranks": {label: decimals(means[label]) for label in order},
            "ci95": {label: intervals[label] for label in order},
            "friedman_p": None if p is None else significant(p, 4),
            "critical_difference": None if gap is None else decimals(gap),
            "groups": groups_within(means, gap, p),
            "reason": test.reason.replace("tasks", "tables") if test else "",
        }
    )


def groups_within(
    means: dict[str, float], gap: float | None, friedman_p: float | None
) -> tuple[tuple[str, ...], ...]:
    """Return the largest sets of mean ranks less than the critical difference apart.

    All are one set where Friedman's test finds no difference at all.
    """
    order = sorted(means, key=lambda label: (means[label], label))
    if gap is None or friedman_p is None:
        return ()
    if friedman_p >= ALPHA:
        return (tuple(order),)
    found: list[tuple[str, ...]] = []
    for place, label in enumerate(order):
        near = [other for other in order[place:] if means[other] - means[label] < gap]
        if len(near) > 1 and not (found and near[-1] == found[-1][-1]):
            found.append(tuple(near))
    return tuple(found)


def _intervals(rows: Floats) -> list[Interval | None]:
    """Return a bootstrap 95% interval over tables for each explainer; None for one table."""
    tables, explainers = rows.shape
    if tables < 2:
        return [None] * explainers
    # One draw of tables serves all explainers; `bootstrap` wants the draws last.
    low, high = bootstrap(tables, lambda draws: rows[draws].mean(axis=1).T)
    return [(decimals(a), decimals(b)) for a, b in zip(low, high, strict=True)]

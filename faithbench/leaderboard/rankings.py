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
from faithbench.metrics.cost import FORWARD_EQUIVALENTS
from faithbench.metrics.registry import FAMILIES, Family
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.ranks import average_ranks, rank_test
from faithbench.stats.summaries import bootstrap

MIN_COVERAGE = 0.9
"""Share of a table's explainers that must have a value for a metric to be ranked in it."""
RANKED_COST = FORWARD_EQUIVALENTS.name
"""The cost that speed is ranked by: it does not depend on the machine."""


@dataclass(frozen=True)
class FamilyColumns:
    """The columns that one family's ranking is made of, by table."""

    family: Family
    columns: dict[str, tuple[Column, ...]]

    @property
    def over(self) -> list[str]:
        """Return the names of all columns, as `<table>/<metric>`."""
        return [f"{table}/{c.metric}" for table, columns in self.columns.items() for c in columns]

    def labels(self, everyone: set[str]) -> list[str]:
        """Return the explainers that have a value in all of these columns, by name."""
        columns = [column for columns in self.columns.values() for column in columns]
        return sorted(everyone.intersection(*(_labels_with_value(column) for column in columns)))

    def ranks(self, table: str, labels: Sequence[str]) -> list[float]:
        """Rank explainers in one table by their mean rank over its columns."""
        ranks = [
            average_ranks(
                [_mean_of(column, label) for label in labels], bool(column.higher_is_better)
            )
            for column in self.columns[table]
        ]
        return _ranks_of_means(ranks)


def rankings_of(counted: Sequence[Table]) -> tuple[Ranking, ...]:
    """Return the overall ranking and one per family, of the tables that count.

    Speed has no part in the overall one: there, drawing at random would win. The Pareto view
    sets cost against faithfulness.
    """
    by_family = [_family_columns(family, counted) for family in FAMILIES]
    families = [family for family in by_family if family.columns]
    if not families:
        return ()
    everyone = {label for table in counted for label in ranked_labels(table)}
    judged = [family for family in families if family.family != "speed"] or families
    shared = sorted(set.intersection(*(set(family.labels(everyone)) for family in judged)))
    rankings = [
        _ranking(
            "overall",
            over=[name for family in judged for name in family.over],
            labels=shared,
            ranks=_overall_ranks(judged, [table.id for table in counted], shared),
            everyone=everyone,
        )
    ]
    for family in families:
        labels = family.labels(everyone)
        ranks = [family.ranks(table, labels) for table in family.columns] if labels else []
        rankings.append(
            _ranking(family.family, over=family.over, labels=labels, ranks=ranks, everyone=everyone)
        )
    return tuple(ranking for ranking in rankings if ranking.mean_ranks)


def counted_tables(tables: Sequence[Table]) -> list[Table]:
    """Return the tables to rank over: of real data if there are any, and with enough in common.

    Only explainers in all of them are ranked, so that a table with few would leave out the
    others. Tables join one by one, each time the one that shares most explainers with those
    before; the number of tables that count is the one for which tables times shared explainers
    is largest, and of equals the larger.
    """
    real = [table for table in tables if table.source != "bundled"] or list(tables)
    labels = {table.id: set(ranked_labels(table)) for table in real}
    shared = set().union(*labels.values())
    joined: list[str] = []
    sizes: list[int] = []
    while len(joined) < len(labels):
        # Sorted, so that of tables that share as many the first by name joins.
        waiting = sorted(labels.keys() - joined)
        joined.append(max(waiting, key=lambda name: len(labels[name] & shared)))
        shared &= labels[joined[-1]]
        sizes.append(len(joined) * len(shared))
    count = max(range(len(sizes)), key=lambda k: (sizes[k], k), default=-1) + 1
    return [table for table in real if table.id in joined[:count]]


def ranked_labels(table: Table) -> list[str]:
    """Return all explainers of a table but the human rationale, which is no method."""
    return [row.label for row in table.entrants if not row.is_human]


def pareto_of(counted: Sequence[Table], rankings: Sequence[Ranking]) -> tuple[ParetoPoint, ...]:
    """Set mean faithfulness ranks against mean costs, over the tables that count.

    Explainers without a known cost are left out.
    """
    all_ranks = next((r.mean_ranks for r in rankings if r.family == "faithfulness"), {})
    table_costs: dict[str, list[float | None]] = {label: [] for label in all_ranks}
    for table in counted:
        for row in table.entrants:
            if row.label in table_costs:
                table_costs[row.label].append(row.forward_equivalents)
    # Left out, not counted as 0: an unknown cost would win every comparison.
    costs = {
        label: fmean(cost for cost in own_costs if cost is not None)
        for label, own_costs in table_costs.items()
        if None not in own_costs
    }
    ranks = {label: rank for label, rank in all_ranks.items() if label in costs}

    def beaten(label: str) -> bool:
        """Return whether another is at least as good in both, and better in one."""
        rank, cost = ranks[label], costs[label]
        return any(
            ranks[other] <= rank
            and costs[other] <= cost
            and (ranks[other], costs[other]) != (rank, cost)
            for other in ranks
        )

    return tuple(
        ParetoPoint(
            label=label,
            faithfulness_rank=rank,
            forward_equivalents=decimals(costs[label]),
            front=not beaten(label),
        )
        for label, rank in ranks.items()
    )


def _family_columns(family: Family, tables: Sequence[Table]) -> FamilyColumns:
    """Return the columns to rank; proxies only where no table has rationales by people."""
    columns = {table.id: _ranked_columns(table, family) for table in tables}
    marked_by_people = any(not c.proxy for of_table in columns.values() for c in of_table)
    kept = {
        table: tuple(c for c in of_table if not (c.proxy and marked_by_people))
        for table, of_table in columns.items()
    }
    return FamilyColumns(family, {table: of_table for table, of_table in kept.items() if of_table})


def _ranked_columns(table: Table, family: Family) -> list[Column]:
    """Return the columns of a family that have a direction, and values of most explainers."""
    columns = [c for c in table.columns if c.family == family and c.higher_is_better is not None]
    if family == "speed":
        columns = [column for column in columns if column.metric == RANKED_COST]
    methods = set(ranked_labels(table))
    fewest = max(1, MIN_COVERAGE * len(methods))
    return [column for column in columns if len(_labels_with_value(column) & methods) >= fewest]


def _labels_with_value(column: Column) -> set[str]:
    return {label for label, score in column.cells.items() if score.mean is not None}


def _mean_of(column: Column, label: str) -> float:
    mean = column.cells[label].mean
    assert mean is not None, "only explainers with a value are ranked"
    return mean


def _overall_ranks(
    families: Sequence[FamilyColumns], tables: Sequence[str], labels: Sequence[str]
) -> list[list[float]]:
    """Rank explainers in each table by their mean rank over its families."""
    if not labels:
        return []
    by_table = [
        [family.ranks(table, labels) for family in families if table in family.columns]
        for table in tables
    ]
    return [_ranks_of_means(ranks) for ranks in by_table if ranks]


def _ranks_of_means(ranks: Sequence[Sequence[float]]) -> list[float]:
    """Rank explainers by their mean rank; `ranks` has one rank per explainer in each row."""
    # Ranked again: Friedman's test is about ranks, of which every table has the same sum.
    return average_ranks([fmean(own_ranks) for own_ranks in zip(*ranks, strict=True)], False)


def _ranking(
    family: Family | str,
    *,
    over: Sequence[str],
    labels: Sequence[str],
    ranks: Sequence[Sequence[float]],
    everyone: set[str],
) -> Ranking:
    """Average the ranks of all tables, a row each, and test them."""
    test = rank_test(ranks, [False] * len(ranks)) if ranks else None
    means = dict(zip(labels, test.mean_ranks, strict=True)) if test else {}
    # Equal mean ranks go by name, so that the same records give the same bytes.
    order = sorted(means, key=lambda label: (means[label], label))
    intervals = dict(zip(labels, _intervals(np.array(ranks)), strict=True)) if test else {}
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
            # A row is a task to the test, and a table here: a task may have several.
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
    groups: list[tuple[str, ...]] = []
    for index, label in enumerate(order):
        near = [other for other in order[index:] if means[other] - means[label] < gap]
        # Ranks are sorted, so that a group ending where the last one ends lies inside it.
        if len(near) > 1 and not (groups and near[-1] == groups[-1][-1]):
            groups.append(tuple(near))
    return tuple(groups)


def _intervals(ranks: Floats) -> list[Interval | None]:
    """Return a bootstrap 95% interval over tables for each explainer; None for one table."""
    tables, explainers = ranks.shape
    if tables < 2:
        return [None] * explainers
    # One draw of tables serves all explainers; `bootstrap` wants the draws last.
    low, high = bootstrap(tables, lambda draws: ranks[draws].mean(axis=1).T)
    return [(decimals(a), decimals(b)) for a, b in zip(low, high, strict=True)]

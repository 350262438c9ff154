"""Explainers ranked by faithfulness over all tables, and faithfulness against cost.

Every two explainers are compared on the tables that they share, aspect by aspect. A rank is 1 plus
the share of comparisons that each other one wins: where all are in all tables, this is the mean
rank. What two explainers get from each other does not depend on who else takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from faithbench.core.rounding import decimals, significant
from faithbench.core.types import Bools, Floats, Ints
from faithbench.leaderboard.board import (
    BoardRow,
    Column,
    Interval,
    Pair,
    ParetoPoint,
    RankedRow,
    Ranking,
    Score,
    Standing,
    Table,
)
from faithbench.leaderboard.names import is_own_model
from faithbench.leaderboard.standings import GATE, is_above, rank_value, ranked_columns
from faithbench.metrics.kinds import Family
from faithbench.metrics.registry import is_headline, is_outdated
from faithbench.stats.pairwise import ALPHA, holm
from faithbench.stats.ranks import RankTest, rank_test
from faithbench.stats.signed_rank import signed_rank
from faithbench.stats.summaries import bootstrap

USUAL_OPERATOR = "mask"
"""Of tables that differ in the operator alone, the one that counts."""


@dataclass(frozen=True)
class Lead:
    """How far explainers are ahead of each other, table by table.

    `ahead` [tables, explainers, explainers] is the share of aspects on which the one is ahead of
    the other, minus the share on which it is behind; NaN where one is not in the table.
    """

    labels: tuple[str, ...]
    ahead: Floats

    def between(self, first: str, second: str) -> list[float]:
        """Return how far the first is ahead on each table that the two share."""
        own = self.ahead[:, self.labels.index(first), self.labels.index(second)]
        shared: list[float] = own[~np.isnan(own)].tolist()
        return shared

    def ranks(self, rivals: Sequence[str], weights: Floats) -> Floats:
        """Return the rank of each explainer among `rivals`, for each row of tables' weights.

        Two without a common table count as even. Where a row leaves out all tables of a pair, the
        pair stands as it does over all: that these were not drawn says nothing about it.
        """
        columns = [self.labels.index(label) for label in rivals]
        ahead = self.ahead[:, :, columns]
        known = ~np.isnan(ahead)
        lost = np.where(known, (1 - np.nan_to_num(ahead)) / 2, 0.0)
        overall = _shares(np.ones((1, len(ahead))), lost, known, np.array(0.5))
        shares = _shares(weights, lost, known, overall)
        # An explainer is no rival of its own.
        for column, row in enumerate(columns):
            shares[:, row, column] = 0.0
        ranks: Floats = 1 + shares.sum(axis=2)
        return ranks


def _shares(weights: Floats, lost: Floats, known: Bools, default: Floats) -> Floats:
    """Return the weighted share of tables lost, for each row of weights; the default of none."""
    tables, shape = len(lost), (len(weights), *lost.shape[1:])
    sums = (weights @ lost.reshape(tables, -1)).reshape(shape)
    counts = (weights @ known.reshape(tables, -1).astype(float)).reshape(shape)
    filled: Floats = np.broadcast_to(default, shape).copy()
    np.divide(sums, counts, out=filled, where=counts > 0)
    return filled


def counted_tables(tables: Sequence[Table]) -> list[Table]:
    """Return the tables to rank over: of real data if there are any, each set of examples once.

    The same examples erased in another way are no second table: the usual operator counts. Nor are
    models that a study trained: where tables show models that tasks name themselves, only those
    count, so that several networks of one task do not weigh more than one.
    """
    real = [table for table in tables if table.source != "bundled"] or list(tables)
    real = [table for table in real if is_own_model(table.task, table.model)] or real
    by_examples: dict[tuple[object, ...], list[Table]] = {}
    for table in real:
        by_examples.setdefault(same_but_operator(table), []).append(table)
    return [
        min(alike, key=lambda table: (table.operator != USUAL_OPERATOR, table.id))
        for alike in by_examples.values()
    ]


def same_but_operator(table: Table) -> tuple[object, ...]:
    """Return what tables agree in that show the same examples and model, however erased."""
    return (
        table.task, table.task_version, table.source, table.split, table.n, table.data_sha256,
        table.model_sha256, table.dtype, table.protocol, table.long,
    )  # fmt: skip


def ranking_of(counted: Sequence[Table]) -> Ranking | None:
    """Rank explainers over tables; None where no table ranks anybody."""
    tables = [table for table in counted if any(row.place is not None for row in table.entrants)]
    by_label = _standings_by_label(tables)
    # In most of its tables: one table below the line counts as lost, but says little by itself.
    ranked = [label for label, own in by_label.items() if 2 * own.count("ranked") >= len(own)]
    if not ranked:
        return None
    controls = [label for label, own in by_label.items() if "control" in own]
    lead = lead_of(tables, sorted(by_label))
    ranks = dict(zip(lead.labels, lead.ranks(ranked, np.ones((1, len(tables))))[0], strict=True))
    intervals = dict(zip(lead.labels, _intervals(lead, ranked), strict=True))
    # Equal ranks go by name, so that the same records give the same bytes.
    order = sorted(ranked, key=lambda label: (decimals(ranks[label]), label))
    pairs = _pairs(lead, order)
    against_first = {pair.second: pair for pair in pairs if pair.first == order[0]}
    facts = RowFacts(tables, first=order[0])

    def row(label: str) -> RankedRow:
        pair = against_first.get(label)
        return facts.row(label, float(ranks[label]), intervals[label], pair)

    below = sorted(set(by_label) - set(ranked) - set(controls), key=lambda x: (ranks[x], x))
    return Ranking(
        tables=tuple(table.id for table in tables),
        rows=tuple(row(label) for label in order),
        below=tuple(row(label) for label in below),
        controls=tuple(row(label) for label in sorted(controls, key=lambda x: (ranks[x], x))),
        pairs=pairs,
        least_p=_least_p(pairs),
    )


def _standings_by_label(tables: Sequence[Table]) -> dict[str, list[Standing]]:
    standings: dict[str, list[Standing]] = {}
    for table in tables:
        for row in table.entrants:
            # What people marked is there on some texts only, and no explainer of the model.
            if not row.is_human:
                standings.setdefault(row.label, []).append(row.standing)
    return standings


def lead_of(tables: Sequence[Table], labels: Sequence[str]) -> Lead:
    """Compare every two explainers on every table, aspect by aspect.

    Who is above the line is ahead of who is below; two below it are even. Controls are compared
    by their values alone, so that one sees where they would stand.
    """
    ahead = np.full((len(tables), len(labels), len(labels)), np.nan)
    for index, table in enumerate(tables):
        ahead[index] = _lead_in(table, labels)
    return Lead(tuple(labels), ahead)


def _lead_in(table: Table, labels: Sequence[str]) -> Floats:
    standings = {row.label: row.standing for row in table.entrants}
    present = np.array([label in standings for label in labels])
    signs = []
    for column in ranked_columns(table.columns).values():
        values = [rank_value(column, label) for label in labels]
        # Rounded, so that the last bit of a mean does not break a tie.
        array = np.round(np.array([np.nan if v is None else v for v in values]), 12)
        signs.append(np.sign(array[:, None] - array[None]))
    known = np.array(signs) if signs else np.zeros((0, len(labels), len(labels)))
    counts = (~np.isnan(known)).sum(axis=0)
    sums = np.nansum(known, axis=0)
    ahead = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    below = np.array([standings.get(label) == "below" for label in labels])
    above = np.array([is_above(standings.get(label, "below")) for label in labels])
    ahead = np.where(above[:, None] & below[None], 1.0, ahead)
    ahead = np.where(below[:, None] & above[None], -1.0, ahead)
    ahead = np.where(below[:, None] & below[None], 0.0, ahead)
    both: Floats = np.where(present[:, None] & present[None], ahead, np.nan)
    return both


def _intervals(lead: Lead, rivals: Sequence[str]) -> list[Interval | None]:
    """Return a bootstrap 95% interval over tables; None of an explainer in fewer than two."""
    tables = len(lead.ahead)
    in_tables = (~np.isnan(np.diagonal(lead.ahead, axis1=1, axis2=2))).sum(axis=0)
    if tables < 2:
        return [None] * len(lead.labels)

    def statistic(draws: Ints) -> Floats:
        weights = np.stack([(draws == table).sum(axis=1) for table in range(tables)], axis=1)
        return lead.ranks(rivals, weights.astype(float)).T

    low, high = bootstrap(tables, statistic)
    return [
        (decimals(a), decimals(b)) if count > 1 else None
        for a, b, count in zip(low, high, in_tables, strict=True)
    ]


def _pairs(lead: Lead, order: Sequence[str]) -> tuple[Pair, ...]:
    """Test every two explainers by signed ranks over their common tables, Holm over all pairs."""
    tests = []
    for first, second in combinations(order, 2):
        values = lead.between(first, second)
        tests.append((first, second, signed_rank(values, [0.0] * len(values))))
    stepped = iter(holm([test.p for _, _, test in tests if test.p is not None]))
    return tuple(
        Pair(
            first=first,
            second=second,
            test="signed-rank over tables",
            n=test.n,
            p=None if test.p is None else significant(test.p, 4),
            adjusted=None if test.p is None else significant(next(stepped), 4),
            effect=round(test.effect, 4) + 0.0,
            reason=test.reason.replace("pairs", "common tables"),
        )
        for first, second, test in tests
    )


def _least_p(pairs: Sequence[Pair]) -> float | None:
    """Return the smallest p value after Holm that the pair with most tables could reach."""
    tested = [pair for pair in pairs if pair.p is not None]
    if not tested:
        return None
    return significant(min(1.0, len(tested) * 2.0 ** (1 - max(pair.n for pair in tested))), 4)


@dataclass(frozen=True)
class RowFacts:
    """What stands beside the ranks: means over the tables that an explainer is in."""

    tables: Sequence[Table]
    first: str

    def row(self, label: str, rank: float, ci95: Interval | None, pair: Pair | None) -> RankedRow:
        """Return the row of one explainer; `pair` is its test against the first."""
        own = [(table, row) for table in self.tables if (row := _row_of(table, label))]
        costs = [row.forward_equivalents for _, row in own]
        # An unknown cost, or one of another machine's making, is not counted as nothing.
        known_costs = [cost for cost in costs if cost is not None]
        worse_on = [table.id for table, _ in own if _is_worse(table, self.first, label)]
        ranked = any(row.standing == "ranked" for _, row in own)
        return RankedRow(
            label=label,
            rank=decimals(rank),
            ci95=ci95,
            tables=tuple(table.id for table, _ in own),
            # A few tables cannot show any difference over tables: what the tests inside most of
            # them show is no tie either.
            tied=ranked
            and label != self.first
            and not _lost(pair)
            and 2 * len(worse_on) < len(own),
            adjusted=None if pair is None else pair.adjusted,
            worse_on=tuple(worse_on),
            skill=self._mean(label, lambda column: column.metric == GATE, _skill),
            # Not as skill: the overlap is counted from chance already.
            stability=self._mean(label, _headline_of("stability"), _value, above=True),
            plausibility=self._mean(label, _headline_of("plausibility"), _skill),
            cost=decimals(fmean(known_costs)) if len(known_costs) == len(costs) else None,
        )

    def _mean(
        self,
        label: str,
        wanted: Callable[[Column], bool],
        read: Callable[[Score], float | None],
        *,
        above: bool = False,
    ) -> float | None:
        """Return the mean over tables of what an explainer has in the first column wanted."""
        values = []
        for table in self.tables:
            row = _row_of(table, label)
            column = next((c for c in table.columns if wanted(c)), None)
            if row is None or column is None or (above and not is_above(row.standing)):
                continue
            score = column.cells.get(label)
            value = None if score is None else read(score)
            if value is not None:
                values.append(value)
        return decimals(fmean(values)) if values else None


def _skill(score: Score) -> float | None:
    return score.skill


def _value(score: Score) -> float | None:
    return score.mean


def _lost(pair: Pair | None) -> bool:
    """Return whether an explainer is significantly worse than the first, over tables."""
    return pair is not None and (pair.adjusted or 1.0) < ALPHA and pair.effect > 0


def _row_of(table: Table, label: str) -> BoardRow | None:
    return next((row for row in table.entrants if row.label == label), None)


def _headline_of(family: Family) -> Callable[[Column], bool]:
    """Find the column that stands for a family: its first headline that people, not proxies, set.

    Only the current version of a metric is taken: values of others are not comparable over tables.
    """
    return lambda column: (
        column.family == family
        and is_headline(column.metric)
        and not is_outdated(column.metric, column.version)
        and not column.proxy
    )


def _is_worse(table: Table, first: str, label: str) -> bool:
    """Return whether the first explainer is significantly better on a table, by the gate."""
    column = next((c for c in table.columns if c.metric == GATE), None)
    for pair in column.pairs if column else ():
        if {pair.first, pair.second} == {first, label} and pair.adjusted is not None:
            effect = pair.effect if pair.first == first else -pair.effect
            return pair.adjusted < ALPHA and effect > 0
    return False


def mean_rank_test(counted: Sequence[Table]) -> tuple[list[str], list[str], RankTest | None]:
    """Test mean ranks over tables by Friedman and Nemenyi, on what all tables share.

    Returns the explainers, the tables, and the test. Its outcome for two explainers depends on who
    else takes part, which is why the board does not rest on it.
    """
    joined = [table for table in counted if any(row.place is not None for row in table.entrants)]
    names = [table.id for table in joined]
    shared = [_ranked_labels(table) for table in joined]
    labels = sorted(set.intersection(*shared)) if shared else []
    if not labels:
        return labels, names, None
    rows = [[_place(table, label) for label in labels] for table in joined]
    return labels, names, rank_test(rows, [False] * len(rows))


def _ranked_labels(table: Table) -> set[str]:
    return {row.label for row in table.entrants if row.place is not None}


def _place(table: Table, label: str) -> float | None:
    row = _row_of(table, label)
    return None if row is None else row.place


def pareto_of(ranking: Ranking | None) -> tuple[ParetoPoint, ...]:
    """Set ranks against mean costs; explainers without a known cost are left out."""
    # Left out, not counted as 0: an unknown cost would win every comparison.
    points = [
        (row.label, row.rank, row.cost)
        for row in (ranking.rows if ranking else ())
        if row.cost is not None
    ]
    return tuple(
        ParetoPoint(
            label=label,
            faithfulness_rank=rank,
            forward_equivalents=cost,
            front=not _is_beaten((rank, cost), ((r, c) for _, r, c in points)),
        )
        for label, rank, cost in points
    )


def _is_beaten(point: tuple[float, float], others: Iterable[tuple[float, float]]) -> bool:
    """Return whether another point is at least as good in both, and better in one."""
    return any(other[0] <= point[0] and other[1] <= point[1] and other != point for other in others)

"""Summaries of a record's rows: each number follows from the rows alone.

A submission's record is checked by computing the same numbers from its rows again.
"""

from __future__ import annotations

from collections.abc import Sequence

from faithbench.core.cost import forward_equivalents
from faithbench.metrics.kinds import Metric
from faithbench.metrics.plausibility import tpr_drop
from faithbench.records.rows import ResultRow
from faithbench.records.schema import CostFacts, MetricFacts
from faithbench.stats.summaries import summarise


def metric_facts(metric: Metric, rows: Sequence[ResultRow], *, proxy: bool) -> MetricFacts:
    """Summarise one metric; `proxy` is true if no person marked the task's rationales."""
    mean, interval, n, skipped = summarise([row.values[metric.name] for row in rows])
    return MetricFacts(
        version=metric.version,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        mean=mean,
        ci95=interval,
        n=n,
        skipped=skipped,
        proxy=proxy and metric.family == "plausibility",
    )


def cost_facts(rows: Sequence[ResultRow]) -> CostFacts:
    """Add up the rows that metrics asked for, and average the explainer's own passes."""
    forwards = _mean_if_all_known([row.forwards for row in rows])
    backwards = _mean_if_all_known([row.backwards for row in rows])
    elsewhere = _mean_if_all_known([row.elsewhere for row in rows]) or None
    total = None
    if forwards is not None and backwards is not None:
        total = forward_equivalents(forwards, backwards, elsewhere or 0.0)
    return CostFacts(
        rows_asked=sum(row.rows_asked for row in rows),
        distinct_rows=sum(row.distinct_rows for row in rows),
        forwards_per_example=_rounded(forwards),
        backwards_per_example=_rounded(backwards),
        elsewhere_per_example=_rounded(elsewhere),
        forward_equivalents_per_example=_rounded(total),
    )


def accuracy_of(rows: Sequence[ResultRow]) -> float:
    """Return the share of examples on which the model is right."""
    return round(sum(row.right for row in rows) / len(rows), 6)


def tpr_drop_of(rows: Sequence[ResultRow]) -> float | None:
    """Return what part of its true-positive rate the model loses without the rationales."""
    pairs = [
        (row.right, row.right_without_rationale)
        for row in rows
        if row.right_without_rationale is not None
    ]
    drop = tpr_drop([before for before, _ in pairs], [after for _, after in pairs])
    return None if drop is None else round(drop, 9)


def largest_gap_of(rows: Sequence[ResultRow]) -> float | None:
    """Return how far, at most, scores miss the sum that the method promises."""
    return max((abs(row.gap) for row in rows if row.gap is not None), default=None)


def _mean_if_all_known(counts: Sequence[float | None]) -> float | None:
    """Return the mean; None if a count is missing, as those of precomputed scores are."""
    known = [count for count in counts if count is not None]
    return sum(known) / len(known) if known and len(known) == len(counts) else None


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 6)

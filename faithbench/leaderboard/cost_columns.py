"""Columns of what explainers cost; without tests, since cost is not measured per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean

from faithbench.core.rounding import decimals, significant
from faithbench.leaderboard.board import Column, Interval, Score
from faithbench.leaderboard.gather import Entry, Group
from faithbench.metrics.registry import METRICS
from faithbench.records.schema import Record

# Measured by clock and memory, and so comparable within one machine only.
MEASURED = ("seconds", "peak_memory")

_COSTS: dict[str, Callable[[Record], float | None]] = {
    "seconds": lambda record: record.timing.seconds_median,
    "peak_memory": lambda record: record.timing.peak_memory_bytes,
    "forwards": lambda record: record.cost.forwards_per_example,
    "backwards": lambda record: record.cost.backwards_per_example,
    "forward_equivalents": lambda record: record.cost.forward_equivalents_per_example,
}


def cost_of(entry: Entry, name: str) -> float | None:
    """Return one cost of an explainer, the mean over its records; None if any has none."""
    costs = [_COSTS[name](record) for record in entry.records]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    mean = fmean(known)
    # Seconds may be very small, so that digits count, not decimals.
    return significant(mean, 4) if name == "seconds" else decimals(mean)


def seconds_interval(entry: Entry) -> Interval | None:
    """Return the interval of the median time; None of several records, which have one each."""
    if len(entry.records) > 1:
        return None
    ends = entry.first.timing.seconds_ci95
    return None if ends is None else (significant(ends[0], 4), significant(ends[1], 4))


def cost_columns(group: Group) -> list[Column]:
    """Return a column for each cost that any explainer has, least first."""
    columns = [_column(name, group) for name in _COSTS]
    return [
        column
        for column in columns
        if any(score.mean is not None for score in column.cells.values())
    ]


def _column(name: str, group: Group) -> Column:
    costs = {entry.label: cost_of(entry, name) for entry in group.entries}
    ordered = sorted(group.entries, key=lambda entry: _sort_key(costs[entry.label], entry))
    cheapest = _cheapest(name, group, costs)
    scores = {
        entry.label: Score(
            mean=costs[entry.label],
            ci95=seconds_interval(entry) if name == "seconds" else None,
            n=0 if costs[entry.label] is None else _sample_size(entry, name),
            skipped=0,
            letters="",
            best=entry.label in cheapest,
            tie=False,
        )
        for entry in ordered
    }
    return Column(
        metric=name,
        title=name,
        family="speed",
        higher_is_better=False,
        version=METRICS[name].version,
        proxy=False,
        cells=scores,
        pairs=(),
    )


def _cheapest(name: str, group: Group, costs: dict[str, float | None]) -> set[str]:
    """Return the labels of the methods with the least cost, of those that are comparable."""
    rivals = [e for e in group.entries if not e.is_human and costs[e.label] is not None]
    if name in MEASURED and rivals:
        machines = Counter(_machine(entry) for entry in rivals)
        # The machine of most explainers; of equally many the first by name.
        usual = min(machines, key=lambda machine: (-machines[machine], machine))
        rivals = [entry for entry in rivals if _machine(entry) == usual]
    least = min((costs[e.label] for e in rivals), default=None, key=lambda cost: cost or 0.0)
    return {entry.label for entry in rivals if costs[entry.label] == least}


def _sort_key(cost: float | None, entry: Entry) -> tuple[bool, bool, float, str]:
    """Order by cost; unknown costs come last, and people after all methods."""
    return entry.is_human, cost is None, cost or 0.0, entry.label


def _sample_size(entry: Entry, name: str) -> int:
    """Return the number of examples that a cost was measured on."""
    record = entry.first
    return record.timing.alone if name in MEASURED else record.task.n


def _machine(entry: Entry) -> str:
    """Return a name for the kind of machine; that of a submission is never taken for ours."""
    environment = entry.first.environment
    facts = (environment.device, environment.platform, environment.threads, entry.submission or "")
    return repr(facts)

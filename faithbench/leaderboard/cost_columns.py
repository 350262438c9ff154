"""Columns of what explainers cost; without tests, since cost is not measured per example."""

from __future__ import annotations

from collections import Counter
from statistics import fmean

from faithbench.core.rounding import decimals, significant
from faithbench.leaderboard.board import Column, Interval, Score
from faithbench.leaderboard.gather import Entry, Group
from faithbench.metrics.cost import COSTS, Cost
from faithbench.metrics.registry import title_of


def cost_of(entry: Entry, cost: Cost) -> float | None:
    """Return one cost of an explainer, the mean over its records; None if any has none."""
    values = [cost.score(record) for record in entry.records]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    mean = fmean(known)
    # Seconds may be very small, so that digits count, not decimals.
    return significant(mean, 4) if cost.unit == "seconds" else decimals(mean)


def interval_of(entry: Entry, cost: Cost) -> Interval | None:
    """Return the interval of a cost; None of several records, which have one each."""
    if len(entry.records) > 1:
        return None
    ends = cost.interval(entry.first)
    return None if ends is None else (significant(ends[0], 4), significant(ends[1], 4))


def cost_columns(group: Group) -> list[Column]:
    """Return a column for each cost that any explainer has, least first."""
    columns = [_column(cost, group) for cost in COSTS]
    return [
        column
        for column in columns
        if any(score.mean is not None for score in column.cells.values())
    ]


def _column(cost: Cost, group: Group) -> Column:
    costs = {entry.label: cost_of(entry, cost) for entry in group.entries}
    ordered = sorted(group.entries, key=lambda entry: _sort_key(costs[entry.label], entry))
    cheapest = _cheapest(cost, group, costs)
    scores = {
        entry.label: Score(
            mean=costs[entry.label],
            ci95=interval_of(entry, cost),
            n=0 if costs[entry.label] is None else _sample_size(entry, cost),
            skipped=0,
            letters="",
            best=entry.label in cheapest,
            tie=False,
        )
        for entry in ordered
    }
    return Column(
        metric=cost.name,
        title=title_of(cost.name),
        family=cost.family,
        higher_is_better=cost.higher_is_better,
        version=cost.version,
        proxy=False,
        aspect=None,
        ranked=False,
        cells=scores,
        pairs=(),
        power=None,
    )


def _cheapest(cost: Cost, group: Group, costs: dict[str, float | None]) -> set[str]:
    """Return the labels of the methods with the least cost, of those that are comparable."""
    rivals = [e for e in group.entries if not e.is_control and costs[e.label] is not None]
    if cost.of_machine and rivals:
        machines = Counter(_machine(entry) for entry in rivals)
        # The machine of most explainers; of equally many the first by name.
        usual = min(machines, key=lambda machine: (-machines[machine], machine))
        rivals = [entry for entry in rivals if _machine(entry) == usual]
    least = min((costs[e.label] for e in rivals), default=None, key=lambda value: value or 0.0)
    return {entry.label for entry in rivals if costs[entry.label] == least}


def _sort_key(value: float | None, entry: Entry) -> tuple[bool, bool, float, str]:
    """Order by cost; unknown costs come last, and controls after all methods."""
    return entry.is_control, value is None, value or 0.0, entry.label


def _sample_size(entry: Entry, cost: Cost) -> int:
    """Return the number of examples that a cost was measured on."""
    record = entry.first
    return record.timing.alone if cost.of_machine else record.task.n


def _machine(entry: Entry) -> str:
    """Return a name for the kind of machine an explainer was timed on."""
    # With the submission's name: a record from elsewhere is never taken to be from our machine.
    environment = entry.first.environment
    facts = (environment.device, environment.platform, environment.threads, entry.submission or "")
    return repr(facts)

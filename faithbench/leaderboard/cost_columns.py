"""What explainers cost: columns without tests, since cost is not measured per example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import fmean

from faithbench.core.rounding import decimals, significant
from faithbench.leaderboard.board import Column, Interval, Score
from faithbench.leaderboard.gather import Entry, Group
from faithbench.metrics.registry import METRICS
from faithbench.records.schema import Record

# Measured by clock and memory: to be compared within one machine only.
MEASURED = ("seconds", "peak_memory")

_COSTS: dict[str, Callable[[Record], float | None]] = {
    "seconds": lambda record: record.timing.seconds_median,
    "peak_memory": lambda record: record.timing.peak_memory_bytes,
    "forwards": lambda record: record.cost.forwards_per_example,
    "backwards": lambda record: record.cost.backwards_per_example,
    "forward_equivalents": lambda record: record.cost.forward_equivalents_per_example,
}


def cost_of(contender: Entry, name: str) -> float | None:
    """Return one cost of an explainer, the mean over its records; None if one has none."""
    found = [_COSTS[name](record) for record in contender.records]
    present = [value for value in found if value is not None]
    if len(present) < len(found):
        return None
    mean = fmean(present)
    return significant(mean, 4) if name == "seconds" else decimals(mean)


def seconds_interval(contender: Entry) -> Interval | None:
    """Return the interval of the median time, where it comes of one record."""
    if len(contender.records) > 1:
        return None
    ends = contender.first.timing.seconds_ci95
    return None if ends is None else (significant(ends[0], 4), significant(ends[1], 4))


def speed_columns(group: Group) -> list[Column]:
    """Return a column for each cost that someone has, least first."""
    made = [_column(name, group) for name in _COSTS]
    return [
        column for column in made if any(cell.mean is not None for cell in column.cells.values())
    ]


def _column(name: str, group: Group) -> Column:
    costs = {c.label: cost_of(c, name) for c in group.contenders}
    rivals = [c for c in group.contenders if not c.is_human and costs[c.label] is not None]
    if name in MEASURED and rivals:
        machines = Counter(_machine(c) for c in rivals)
        # That of most explainers; of equally many the first by name.
        usual = min(machines, key=lambda machine: (-machines[machine], machine))
        rivals = [c for c in rivals if _machine(c) == usual]
    least = min((costs[c.label] for c in rivals), default=None, key=lambda cost: cost or 0.0)
    best = {c.label for c in rivals if costs[c.label] == least}
    cells = {}
    for one in sorted(group.contenders, key=lambda c: _place(costs[c.label], c)):
        cost = costs[one.label]
        cells[one.label] = Score(
            mean=cost,
            ci95=seconds_interval(one) if name == "seconds" else None,
            n=0 if cost is None else _sample(one, name),
            skipped=0,
            letters="",
            best=one.label in best,
            tie=False,
        )
    return Column(
        metric=name,
        title=name,
        family="speed",
        higher_is_better=False,
        version=METRICS[name].version,
        proxy=False,
        cells=cells,
        pairs=(),
    )


def _place(cost: float | None, contender: Entry) -> tuple[bool, bool, float, str]:
    return contender.is_human, cost is None, cost or 0.0, contender.label


def _sample(contender: Entry, name: str) -> int:
    """Return on how many examples a cost was measured."""
    record = contender.first
    return record.timing.alone if name in MEASURED else record.task.n


def _machine(contender: Entry) -> str:
    """Name the kind of machine; one that someone submitted from is another."""
    facts = contender.first.environment
    return repr((facts.device, facts.platform, facts.threads, contender.submission or ""))

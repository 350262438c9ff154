"""What an explanation costs, in one table: the run measures it, records keep it, tables show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Literal

from faithbench.metrics.kinds import Measure, Metric

CostUnit = Literal["seconds", "bytes", "rows"]


@dataclass(frozen=True, kw_only=True)
class Cost(Measure):
    """A cost of explaining one example, in a unit that says how it is rounded and written.

    `score` reads it from a record, and `interval_field` is where a record has its 95% interval.
    """

    unit: CostUnit
    interval_field: str | None = None

    @property
    def of_machine(self) -> bool:
        """Whether clock or memory measure it: to be compared within one machine only."""
        return self.unit != "rows"

    def interval(self, record: object) -> tuple[float, float] | None:
        """Return the interval of this cost that a record has."""
        if self.interval_field is None:
            return None
        ends: tuple[float, float] | None = attrgetter(self.interval_field)(record)
        return ends


def _cost(
    name: str,
    summary: str,
    unit: CostUnit,
    field: str,
    *,
    interval_field: str | None = None,
    headline: bool = False,
) -> Cost:
    """Describe a cost by where a record keeps it: less is better, and nothing costs less than 0."""
    return Cost(
        name=name,
        family="speed",
        higher_is_better=False,
        bounds=(0.0, inf),
        summary=summary,
        # By the field's name: the room of records, where the schema lives, builds on this one.
        score=attrgetter(field),
        unit=unit,
        interval_field=interval_field,
        headline=headline,
    )


SECONDS = _cost(
    "seconds",
    "Median time per example: one at a time, warm, the explainer alone.",
    "seconds",
    "timing.seconds_median",
    interval_field="timing.seconds_ci95",
)
PEAK_MEMORY = _cost(
    "peak_memory",
    "Highest memory above the loaded model while explaining one example.",
    "bytes",
    "timing.peak_memory_bytes",
)
FORWARDS = _cost(
    "forwards",
    "Rows through the network, per example.",
    "rows",
    "cost.forwards_per_example",
)
BACKWARDS = _cost(
    "backwards",
    "Rows back through the network, per example.",
    "rows",
    "cost.backwards_per_example",
)
FORWARD_EQUIVALENTS = _cost(
    "forward_equivalents",
    "Forwards, twice the backwards, and other networks by FLOPs: cost in passes of the model.",
    "rows",
    "cost.forward_equivalents_per_example",
    headline=True,
)

COSTS = (SECONDS, PEAK_MEMORY, FORWARDS, BACKWARDS, FORWARD_EQUIVALENTS)


def wants_timing(metrics: Iterable[Metric]) -> bool:
    """Return whether a metric is asked for that the explainer must be run alone for."""
    return any(isinstance(metric, Cost) and metric.of_machine for metric in metrics)

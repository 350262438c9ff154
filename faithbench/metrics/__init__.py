"""Metrics: each a pure plan (which inputs it needs) and a pure score (what they say)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faithbench.errors import FaithbenchError, unknown
from faithbench.types import Bools, Case, Floats

Family = Literal["faithfulness", "stability", "plausibility", "speed"]
Plan = Callable[[Case], Bools]
Score = Callable[[Case, Floats], float | None]


@dataclass(frozen=True)
class Metric:
    """A number with its meaning: direction, range and version of the formula.

    `plan` returns keep-masks [rows, tokens]; `score` gets the log-probabilities of those
    rows [rows, classes] and returns the value, or None where it is not defined.
    """

    name: str
    family: Family
    higher_is_better: bool
    low: float
    high: float
    version: int
    summary: str
    plan: Plan
    score: Score

    def value(self, case: Case, answers: Floats) -> float | None:
        """Score a case, refusing a value outside the metric's range."""
        value = self.score(case, answers)
        slack = 1e-9
        if value is not None and not self.low - slack <= value <= self.high + slack:
            raise FaithbenchError(
                f"{self.name} is {value}, outside its range [{self.low}, {self.high}]; "
                "this is a fault of the metric: please report it"
            )
        return value


METRICS: dict[str, Metric] = {}


def metric(
    name: str,
    *,
    family: Family,
    higher_is_better: bool,
    bounds: tuple[float, float],
    plan: Plan,
    version: int = 1,
) -> Callable[[Score], Score]:
    """Register a score function under a name, with its facts beside it."""

    def register(score: Score) -> Score:
        if name in METRICS:
            raise FaithbenchError(f"two metrics are named {name!r}; rename one")
        summary = (score.__doc__ or "").strip().splitlines()[0]
        METRICS[name] = Metric(
            name, family, higher_is_better, *bounds, version, summary, plan, score
        )
        return score

    return register


def find_metrics(names: str) -> tuple[Metric, ...]:
    """Resolve a comma-separated list of metrics or families, or `all`."""
    wanted: dict[str, Metric] = {}
    families = {m.family for m in METRICS.values()}
    for name in (part.strip() for part in names.split(",")):
        if name in METRICS:
            wanted[name] = METRICS[name]
        elif name in families or name == "all":
            wanted |= {m.name: m for m in METRICS.values() if name in (m.family, "all")}
        else:
            raise unknown("metric", name, [*METRICS, *families, "all"])
    return tuple(wanted.values())


from faithbench.metrics import faithfulness  # noqa: E402, F401  # registers on import

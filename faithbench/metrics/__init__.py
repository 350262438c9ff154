"""Metrics: each a pure plan (which inputs it needs) and a pure score (what they say)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from faithbench.errors import FaithbenchError, unknown
from faithbench.types import Answers, Bools, Case

Family = Literal["faithfulness", "stability", "plausibility", "speed"]
Plan = Callable[[Case], Bools]
Score = Callable[[Case, Answers], float | None]
Enough = Callable[[Answers], bool]


def no_rows(case: Case) -> Bools:
    """Plan nothing: the scores alone say it."""
    return np.ones((0, len(case.every_score)), dtype=bool)


@dataclass(frozen=True)
class Metric:
    """A number with its meaning: direction, range and version of the formula.

    `plan` returns keep-masks [rows, tokens of the input]; `score` gets what the model makes
    of those rows, and returns the value, or None where it is not defined. With `enough`, rows
    are asked for in their order until it is true of the answers, and `score` gets those. A
    metric `on_request` runs only if it is named; one that `needs_bounds` gets the case's
    bounds. `higher_is_better` is None where neither is.
    """

    name: str
    family: Family
    higher_is_better: bool | None
    low: float
    high: float
    version: int
    summary: str
    plan: Plan
    score: Score
    enough: Enough | None = None
    on_request: bool = False
    needs_bounds: bool = False

    def rows(self, case: Case) -> Bools:
        """Plan the rows of a case; where nothing may be erased there are none."""
        return self.plan(case) if case.n else no_rows(case)

    def value(self, case: Case, answers: Answers) -> float | None:
        """Score a case, refusing a value outside the metric's range."""
        if not case.n and self.plan is not no_rows:
            return None
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
    higher_is_better: bool | None,
    bounds: tuple[float, float],
    plan: Plan = no_rows,
    version: int = 1,
    enough: Enough | None = None,
    on_request: bool = False,
    needs_bounds: bool = False,
) -> Callable[[Score], Score]:
    """Register a score function under a name, with its facts beside it."""

    def register(score: Score) -> Score:
        if name in METRICS:
            raise FaithbenchError(f"two metrics are named {name!r}; rename one")
        summary = (score.__doc__ or "").strip().splitlines()[0]
        METRICS[name] = Metric(
            name, family, higher_is_better, *bounds, version, summary, plan, score,
            enough, on_request, needs_bounds,
        )  # fmt: skip
        return score

    return register


def find_metrics(names: str) -> tuple[Metric, ...]:
    """Resolve a comma-separated list of metrics or families, or `all`.

    Families and `all` leave out what runs on request only: name those.
    """
    wanted: dict[str, Metric] = {}
    families = {m.family for m in METRICS.values()}
    for name in (part.strip() for part in names.split(",")):
        if name in METRICS:
            wanted[name] = METRICS[name]
        elif name in families or name == "all":
            wanted |= {
                m.name: m
                for m in METRICS.values()
                if name in (m.family, "all") and not m.on_request
            }
        else:
            raise unknown("metric", name, [*METRICS, *families, "all"])
    return tuple(wanted.values())


# Each registers its metrics on import.
from faithbench.metrics import (  # noqa: E402
    faithfulness,  # noqa: F401
    question_answering,  # noqa: F401
    released,  # noqa: F401
)

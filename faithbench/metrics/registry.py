"""Metrics: what each number means, and how it comes about.

There are three kinds. A case metric sees one example and plans the inputs it wants the model to
read. A table metric sees the words and scores of all examples. The run itself takes the measures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Bools, Case, Outputs

if TYPE_CHECKING:
    from faithbench.metrics.explained import ExplainedTexts


Family = Literal["faithfulness", "stability", "plausibility", "speed"]
FAMILIES: tuple[Family, ...] = ("faithfulness", "stability", "plausibility", "speed")
Need = Literal["answers", "rationale", "sentences", "seeds"]
Plan = Callable[[Case], Bools]
Score = Callable[[Case, Outputs], float | None]
Enough = Callable[[Outputs], bool]
TableScore = Callable[["ExplainedTexts"], list[float | None]]


def no_rows(case: Case) -> Bools:
    """Plan nothing: the scores alone say it."""
    return np.ones((0, len(case.every_score)), dtype=bool)


@dataclass(frozen=True)
class Metric:
    """A number with its meaning: direction, range and version of the formula.

    `higher_is_better` is None where neither is. A metric that is `opt_in` runs only if it is named;
    `need` is what a task or a run must have for it: accepted answers, rationales, rationales
    that mark whole sentences, or an explainer that is run under several seeds.
    """

    name: str
    family: Family
    higher_is_better: bool | None
    low: float
    high: float
    version: int
    summary: str
    opt_in: bool = False
    need: Need | None = None

    def checked(self, value: float | None) -> float | None:
        """Return a value, refusing one outside the metric's range."""
        slack = 1e-9
        if value is not None and not self.low - slack <= value <= self.high + slack:
            raise FaithbenchError(
                f"{self.name} is {value}, outside its range [{self.low}, {self.high}]; "
                "this is a fault of the metric: please report it"
            )
        return value


@dataclass(frozen=True, kw_only=True)
class CaseMetric(Metric):
    """A metric of one example, with the inputs it wants the model to read.

    `plan` returns keep-masks [rows, tokens of the input]; `score` gets what the model makes
    of those rows, and returns the value, or None where it is not defined. With `enough`, rows
    are asked for in their order until it is true of the answers, and `score` gets those. One
    that `needs_bounds` gets the case's bounds.
    """

    plan: Plan
    score: Score
    enough: Enough | None = None
    needs_bounds: bool = False

    def rows(self, case: Case) -> Bools:
        """Plan the rows of a case; where nothing may be erased there are none."""
        return self.plan(case) if case.n else no_rows(case)

    def value(self, case: Case, answers: Outputs) -> float | None:
        """Score a case, refusing a value outside the metric's range."""
        if not case.n and self.plan is not no_rows:
            return None
        return self.checked(self.score(case, answers))


@dataclass(frozen=True, kw_only=True)
class TableMetric(Metric):
    """A metric that reads the words and scores of all examples: one value, or None, for each."""

    score: TableScore

    def values(self, table: ExplainedTexts) -> list[float | None]:
        """Score all examples, refusing a value outside the metric's range."""
        return [self.checked(value) for value in self.score(table)]


@dataclass(frozen=True)
class Measure(Metric):
    """A number that the run itself takes, of the explainer at work or of the model."""


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
    opt_in: bool = False,
    needs_bounds: bool = False,
    need: Need | None = None,
) -> Callable[[Score], Score]:
    """Register a function that scores one case under a name, with its facts beside it."""

    def register(score: Score) -> Score:
        file_metric(
            CaseMetric(
                name, family, higher_is_better, *bounds, version, summary_of(score), opt_in,
                need, plan=plan, score=score, enough=enough, needs_bounds=needs_bounds,
            )
        )  # fmt: skip
        return score

    return register


def table_metric(
    name: str,
    *,
    family: Family,
    higher_is_better: bool | None,
    bounds: tuple[float, float],
    version: int = 1,
    opt_in: bool = False,
    need: Need | None = None,
) -> Callable[[TableScore], TableScore]:
    """Register a function that scores all examples of an explainer together."""

    def register(score: TableScore) -> TableScore:
        file_metric(
            TableMetric(
                name, family, higher_is_better, *bounds, version, summary_of(score), opt_in,
                need, score=score,
            )
        )  # fmt: skip
        return score

    return register


def file_metric(metric: Metric) -> None:
    """Add a metric to those that can be asked for."""
    if metric.name in METRICS:
        raise FaithbenchError(f"two metrics are named {metric.name!r}; rename one")
    METRICS[metric.name] = metric


def summary_of(score: Callable[..., object]) -> str:
    """Return the first line of a function's docstring."""
    return (score.__doc__ or "").strip().splitlines()[0]


def find_metrics(names: str, there: Iterable[Need] | None = None) -> tuple[Metric, ...]:
    """Resolve a comma-separated list of metrics or families, or `all`.

    Families and `all` leave out what runs on request only: name those. `all` also leaves out
    what needs something that is not `there`, if that is given. A name or family after a minus
    is taken out of what stands before it: `all,-tau_loo`.
    """
    has = None if there is None else {None, *there}
    wanted: dict[str, Metric] = {}
    for part in (part.strip() for part in names.split(",")):
        named = _named(part.removeprefix("-"), has)
        if part.startswith("-"):
            wanted = {name: metric for name, metric in wanted.items() if name not in named}
        else:
            wanted |= named
    if not wanted:
        raise FaithbenchError(f"--metrics {names} leaves nothing to compute; name what is wanted")
    return tuple(wanted.values())


def _named(name: str, has: set[Need | None] | None) -> dict[str, Metric]:
    if name in METRICS:
        return {name: METRICS[name]}
    if name not in FAMILIES and name != "all":
        raise unknown("metric", name, [*METRICS, *FAMILIES, "all"])
    return {
        m.name: m
        for m in sorted(METRICS.values(), key=lambda m: FAMILIES.index(m.family))
        if not m.opt_in and (name == m.family or (name == "all" and (has is None or m.need in has)))
    }


def case_metrics(metrics: Iterable[Metric]) -> tuple[CaseMetric, ...]:
    """Return those that read one example at a time."""
    return tuple(m for m in metrics if isinstance(m, CaseMetric))


def table_metrics(metrics: Iterable[Metric]) -> tuple[TableMetric, ...]:
    """Return those that read the words of all examples."""
    return tuple(m for m in metrics if isinstance(m, TableMetric))


TITLES = {"aopc": "AOPC", "lodds": "LOdds"}

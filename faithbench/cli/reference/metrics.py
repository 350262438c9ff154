"""The card of a metric: read off the facts that stand beside its function."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from faithbench.cli.reference.card import Card, paragraphs_of, plugin_options, references
from faithbench.core.errors import FaithbenchError
from faithbench.core.papers import papers_of
from faithbench.core.types import Case
from faithbench.metrics import METRICS, find_metrics
from faithbench.metrics.kinds import CaseMetric, InfluenceMetric, Measure, Metric, Need, Trained

_TASKS: dict[Need, str] = {"answers": "squad", "sentences": "multirc"}
"""Bundled tasks that have what a metric needs, where sst2 has not."""

TOKENS = 20
"""Tokens of the text for which a metric's erased inputs are counted."""

_NEEDS: dict[Need, str] = {
    "answers": "accepted answers: a task with questions",
    "rationale": "rationales",
    "sentences": "rationales that mark whole sentences",
    "seeds": "an explainer that draws at random",
}


def metric_card(name: str, files: Sequence[Path] = ()) -> Card:
    """Return the card of one metric, by its name."""
    metrics = find_metrics(name, files=files)
    if len(metrics) != 1:
        raise FaithbenchError(f"{name!r} stands for {len(metrics)} metrics; name one of them")
    (metric,) = metrics
    score = getattr(metric, "score", None)
    # What the run measures is read by an attrgetter, whose docstring says nothing of the metric.
    written = inspect.isfunction(score)
    return Card(
        metric.name,
        metric.summary,
        paragraphs_of(score.__doc__)[1:] if written else (),
        facts=tuple(_facts(metric)),
        papers=papers_of(metric),
        commands=tuple(_commands(metric, plugin_options(files))),
    )


def _commands(metric: Metric, options: str) -> Iterator[str]:
    if isinstance(metric, Trained):
        return
    task = _TASKS.get(metric.need, "sst2") if metric.need else "sst2"
    yield f"faithbench run -e attention,random -t {task} --metrics {metric.name}{options}"


def _facts(metric: Metric) -> Iterator[tuple[str, str]]:
    yield "family", metric.family
    yield "version", str(metric.version)
    yield (
        "better",
        {True: "up", False: "down", None: "neither: it describes"}[metric.higher_is_better],
    )
    yield "range", range_text(metric)
    yield "runs", runs_text(metric)
    if metric.need:
        yield "needs", _NEEDS[metric.need]
    yield "cost", _cost(metric)
    if metric.aspect:
        ranked = ", and explainers are ranked by it" if metric.ranked else ""
        yield "aspect", f"{metric.aspect}{ranked}"
    variants = [other for other in METRICS if other.startswith(f"{metric.name}:")]
    if variants:
        yield "variants", ", ".join(variants)
    yield "papers", references(papers_of(metric))


def range_text(metric: Metric) -> str:
    """Return the lowest and the highest value, or that there is no limit."""
    return f"{metric.low:.3g}..{metric.high:.3g}".replace("-inf..inf", "any")


def runs_text(metric: Metric) -> str:
    """Say how a metric is asked for."""
    if isinstance(metric, Trained):
        return f"by `{metric.command}`"
    return "if it is named" if metric.opt_in else "by default, with its family and with `all`"


def _cost(metric: Metric) -> str:
    """Say what a metric asks of the model for one example."""
    if isinstance(metric, Trained):
        return "classifiers are trained"
    if isinstance(metric, InfluenceMetric):
        return "gradients of the model and of its inner representations, once for all explainers"
    if isinstance(metric, Measure):
        return "taken by the run itself"
    if not isinstance(metric, CaseMetric):
        return "no pass of the model: it is computed of scores and words"
    rows = len(metric.rows(_text_of(TOKENS)))
    bounds = (
        "; a beam search for its bounds, once for all explainers" if metric.needs_bounds else ""
    )
    if not rows:
        return f"no pass of the model{bounds}"
    most = "at most " if metric.enough else ""
    return (
        f"{most}{rows} erased inputs for a text of {TOKENS} tokens; equal ones are computed once "
        f"for all metrics and explainers{bounds}"
    )


def _text_of(tokens: int) -> Case:
    """Return a text between two special tokens, with scores that fall along it."""
    scores = np.arange(tokens, 0, -1.0) - tokens / 2 - 0.5
    positions = np.arange(1, tokens + 1)
    return Case(
        scores=scores,
        positions=positions,
        log_probability=-0.1,
        every_score=np.concatenate([[0.0], scores, [0.0]]),
        evidence=positions,
        bounds=(0.0, 1.0),
    )

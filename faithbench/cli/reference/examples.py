"""Heat maps for reference pages: bundled texts, explained on bundled models as pages are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING

from faithbench.metrics.kinds import CaseMetric, TableMetric, WordMetric
from faithbench.metrics.registry import METRICS

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model
    from faithbench.run.evaluation import Evaluation

TASK = "sst2"
SENTENCE = "bundled-sst2-131"
"""The bundled example that pages show: short, with a rationale."""

COMPARED = ("deep-shap", "attention", "random")
"""Explainers that a metric's page compares."""

EXAMPLES = 4

CHEAP = (CaseMetric, WordMetric, TableMetric)
DEAR = ("naopc",)

QUICKER = {"partition-shap": "partition-shap:evaluations=64"}
"""Settings for the example of an explainer that takes its time, and says so in the caption."""

# What an objective pulls together, or apart, shown on a model that was trained without it.
OBJECTIVES: dict[str, tuple[tuple[str, ...], str]] = {
    "cross-entropy": (("deep-shap",), "What the bundled model, trained by it alone, looks at:"),
    "divergence": (
        ("attention",),
        "Attention of a model trained without it, from which another model's would be moved away:",
    ),
    "neutral": (
        ("human",),
        "The marked words are masked in the copies that are taught to be neutral:",
    ),
    "saliency": (
        ("human", "gradient:norm=sum"),
        "The words that people marked, and the gradient that is asked to be positive there, of a "
        "model trained without it:",
    ),
    "saloss": (
        ("salience", "attention"),
        "The salience that attention is kept close to, and the attention of a model trained "
        "without it:",
    ),
}


@cache
def _bundled(task: str) -> tuple[Model, Dataset]:
    from faithbench import api

    data = api.load_dataset(task, source="bundled")
    return api.load_model(task=task, device="cpu"), data


@cache
def heat_map_of(explainer: str, task: str = TASK, example_id: str = SENTENCE) -> str:
    """Explain one bundled example; the explainer's label, the prediction and the map as HTML."""
    from faithbench.explainers.selection import find_explainers
    from faithbench.models.encoding import collate, encode
    from faithbench.models.predictions import predictions
    from faithbench.models.session import Session
    from faithbench.run.attribute import attribute, seed_of
    from faithbench.run.heat_map import heat_map_html

    model, data = _bundled(task)
    (selected,) = find_explainers(QUICKER.get(explainer, explainer))
    example = next(e for e in data.examples if not example_id or e.id == example_id)
    encoding = encode(model, example, data.task.evidence)
    with Session(model) as session:
        (prediction,) = predictions(session.engine, [encoding])
        batch = collate(model, [encoding], [prediction.target], [seed_of(0, example.id)], 0)
        attribution = attribute(session, selected, batch)[0]
    said = model.kind.describe(model.labels, encoding, prediction.target)
    chance = math.exp(prediction.log_probability)
    return (
        '<figure class="heat-map"><figcaption>'
        f"<code>{escape(selected.label)}</code>: {escape(said)} (p = {chance:.3f})</figcaption>"
        f"<p>{heat_map_html(encoding, attribution.scores)}</p></figure>"
    )


def task_example(task: str) -> str:
    """Explain the first bundled example of a task that ships with some."""
    return heat_map_of("attn-lrp", task, "")


@cache
def _evaluated() -> Evaluation:
    """Score a few explainers on a few bundled sentences, by the metrics that take little time."""
    from faithbench import api

    named = [name for name, metric in METRICS.items() if isinstance(metric, CHEAP)]
    asked = [name for name in named if name not in DEAR and METRICS[name].need != "answers"]
    return api.evaluate(
        TASK,
        list(COMPARED),
        model=_bundled(TASK)[0],
        source="bundled",
        limit=EXAMPLES,
        metrics=[name for name in asked if METRICS[name].need != "sentences"],
        device="cpu",
        jobs=1,
    )


def values_of(metric: str) -> Sequence[tuple[str, float | None]]:
    """Return the mean of a metric over a few sentences, for each explainer; nothing if it is dear.

    What the run measures (times, noise) is left out, too: it would differ each time.
    """
    records = _evaluated().records.items()
    return [(label, r.metrics[metric].mean) for label, r in records if metric in r.metrics]

"""The dev score that chooses an epoch or a setting: one of the task, or one of an explainer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Encoding, Progress
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.metrics.kinds import CaseMetric
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import collate, encode
from faithbench.models.engine import Engine
from faithbench.models.evaluation import outcomes_of
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute, seed_of
from faithbench.run.score import score
from faithbench.training.items import TrainingItem
from faithbench.training.objectives.protocol import added_items

STEP = 64
"""Number of examples that are explained and scored between two progress reports."""


@dataclass(frozen=True)
class DevMetric:
    """A score of a model on its dev split, and which of several is the best.

    With an `explainer`, it is the mean of a metric over the explained examples, which the model
    predicts for itself; else a score of the task's kind.
    """

    name: str
    best: Callable[[Sequence[float]], float] = max
    metric: CaseMetric | None = None
    explainer: Selected | None = None

    def score(
        self, model: Model, data: Dataset, losses: Sequence[object], progress: Progress
    ) -> float:
        """Score a model on a split; items that `losses` add to the split count as others do."""
        if self.metric is None or self.explainer is None:
            return _score_with_added(model, data, losses, progress)[self.name]
        return _explained_score(model, data, self.metric, self.explainer, progress)


def find_dev_metric(text: str, kind: str) -> DevMetric:
    """Resolve the name of a score, or `metric@explainer`, such as flip_fraction@attention."""
    name, at, wanted = text.partition("@")
    if not at:
        if text not in KINDS[kind].scores:
            raise unknown("score", text, [*KINDS[kind].scores, "flip_fraction@attention"])
        return DevMetric(text)
    found, explainers = find_metrics(name), find_explainers(wanted)
    if len(found) != 1 or not isinstance(found[0], CaseMetric) or len(explainers) != 1:
        raise FaithbenchError(
            f"{text!r} should be one metric of erased inputs and one explainer, such as "
            "flip_fraction@attention"
        )
    metric = found[0]
    if metric.higher_is_better is None:
        raise FaithbenchError(f"metric {name!r} has no better and worse; choose by another")
    return DevMetric(text, max if metric.higher_is_better else min, metric, explainers[0])


def score_added(
    model: Model, data: Dataset, losses: Sequence[object], progress: Progress
) -> float | None:
    """Return the share of the items that losses add to a split which get their added class."""
    own = len(data.task.labels)
    added = [e for e in _added_encodings(model, data, losses) if e.example.label >= own]
    if not added:
        return None
    found = outcomes_of(Engine(model), added)
    progress(f"scoring {data.split}", len(added), len(added))
    pairs = zip(found, added, strict=True)
    return sum(bool(outcome == e.example.label) for outcome, e in pairs) / len(added)


def _score_with_added(
    model: Model, data: Dataset, losses: Sequence[object], progress: Progress
) -> dict[str, float]:
    own = [encode(model, example, data.task.evidence) for example in data.examples]
    encodings = own + _added_encodings(model, data, losses)
    engine, found = Engine(model), []
    for start in range(0, len(encodings), 4 * STEP):
        found += outcomes_of(engine, encodings[start : start + 4 * STEP])
        progress(f"scoring {data.split}", len(found), len(encodings))
    return model.kind.score(found, [e.example for e in encodings], model.labels)


def _added_encodings(model: Model, data: Dataset, losses: Sequence[object]) -> list[Encoding]:
    """Encode what losses make of a split's examples, each with its added label."""
    added = []
    for example in data.examples:
        item = TrainingItem(encode(model, example, data.task.evidence), (example.label,))
        for more in added_items(losses, model, item, len(data.task.labels)):
            labelled = replace(more.encoding.example, label=more.targets[0])
            added.append(replace(more.encoding, example=labelled))
    return added


def _explained_score(
    model: Model, data: Dataset, metric: CaseMetric, selected: Selected, progress: Progress
) -> float:
    """Return the mean of a metric over a split, leaving out examples where it has no value."""
    encodings = [encode(model, example, data.task.evidence) for example in data.examples]
    encodings.sort(key=lambda encoding: len(encoding.ids))
    values: list[float] = []
    with Session(model) as session:
        for start in range(0, len(encodings), STEP):
            some = encodings[start : start + STEP]
            predicted = predictions(session.engine, some)
            seeds = [seed_of(0, encoding.example.id) for encoding in some]
            batch = collate(model, some, [p.target for p in predicted], seeds)
            attributions = attribute(session, selected, batch)
            full = [p.log_probability for p in predicted]
            scored = score(session.engine, attributions, full, (metric,), "mask")
            found = [one.values[metric.name] for one in scored]
            values += [value for value in found if value is not None]
            session.clear()
            session.engine.forget()
            progress(f"explaining {data.split}", start + len(some), len(encodings))
    if not values:
        raise FaithbenchError(f"{metric.name} has no value on any example of {data.split}")
    return sum(values) / len(values)

"""Task performance of a model: its predictions on a split, and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from faithbench.core.types import Encoding, Progress
from faithbench.data.dataset import Dataset
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import predictions

STEP = 256
"""Number of examples that are encoded and predicted between two progress reports."""


def accuracy(model: Model, data: Dataset, progress: Progress | None = None) -> float:
    """Return the share of examples whose predicted class is their label."""
    return evaluate(model, data, progress)["accuracy"]


def evaluate(model: Model, data: Dataset, progress: Progress | None = None) -> dict[str, float]:
    """Score a model on a split, by the scores of its kind."""
    return model.kind.score(outcomes(model, data, progress), data.examples, data.task.labels)


def outcomes(model: Model, data: Dataset, progress: Progress | None = None) -> list[Any]:
    """Return the model's prediction for each example: a class, or the text of an answer."""
    engine, results = Engine(model), []
    for start in range(0, len(data.examples), STEP):
        examples = data.examples[start : start + STEP]
        encodings = [encode(model, example, data.task.evidence) for example in examples]
        results += outcomes_of(engine, encodings)
        if progress is not None:
            progress(f"scoring {data.split}", start + len(examples), len(data.examples))
    return results


def outcomes_of(engine: Engine, encodings: Sequence[Encoding]) -> list[Any]:
    """Return the prediction for each encoding; the engine forgets them."""
    predicted = predictions(engine, encodings)
    engine.forget()
    kind = engine.model.kind
    return [
        kind.outcome(encoding, prediction.target)
        for encoding, prediction in zip(encodings, predicted, strict=True)
    ]

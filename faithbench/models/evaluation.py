"""How good the model itself is: predictions and their scores through the one engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from faithbench.core.types import Encoding, Example, Floats, Progress
from faithbench.data.dataset import Dataset
from faithbench.models.answers import best_span, exact_match, overlap_f1, span_text
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model

CLASS_SCORES = ("accuracy", "macro_f1", "matthews")
ANSWER_SCORES = ("exact_match", "f1")


def predict(engine: Engine, encodings: Sequence[Encoding]) -> Floats:
    """Return the log-probabilities of the full inputs, one line per example."""
    return engine.log_probabilities([(e.ids, e.types) for e in encodings])


def accuracy(model: Model, data: Dataset, progress: Progress | None = None) -> float:
    """Return the share of examples whose predicted class is their label."""
    return evaluate(model, data, progress)["accuracy"]


def evaluate(model: Model, data: Dataset, progress: Progress | None = None) -> dict[str, float]:
    """Score a model on a split: CLASS_SCORES, or ANSWER_SCORES of a question answerer."""
    if len(model.outputs) > 1:
        return answer_scores(answers_of(model, data, progress), data.examples)
    engine, found = Engine(model), []
    for encodings in _chunks(model, data, progress):
        found += np.argmax(predict(engine, encodings), axis=1).tolist()
        engine.forget()
    return class_scores(found, [e.label for e in data.examples], len(data.task.labels))


def answers_of(model: Model, data: Dataset, progress: Progress | None = None) -> list[str]:
    """Return the predicted answer of each question, "" for none where the task knows none."""
    engine, found = Engine(model), []
    may_be_none = len(data.task.labels) > 1
    for encodings in _chunks(model, data, progress):
        rows = [(e.ids, e.types) for e in encodings]
        starts, ends = (engine.log_probabilities(rows, head) for head in model.outputs)
        for encoding, start, end in zip(encodings, starts, ends, strict=True):
            span = best_span(encoding, start, end, may_be_none=may_be_none)
            found.append(span_text(encoding, span))
        engine.forget()
    return found


def answer_scores(found: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Return SQuAD's exact match and F1, means over questions."""
    accepted = [[answer.text for answer in e.answers] for e in examples]
    pairs = list(zip(found, accepted, strict=True))
    return {
        "exact_match": float(np.mean([exact_match(*pair) for pair in pairs])),
        "f1": float(np.mean([overlap_f1(*pair) for pair in pairs])),
    }


def class_scores(found: Sequence[int], gold: Sequence[int], classes: int) -> dict[str, float]:
    """Return accuracy, F1 averaged over all classes, and Matthews' correlation.

    A class that is neither predicted nor there has an F1 of 0. Matthews' is R_K of Gorodkin
    (2004) for more than two classes, and 0 where either side knows one class only.
    """
    table = np.zeros((classes, classes))
    np.add.at(table, (np.asarray(gold), np.asarray(found)), 1)
    right, there, said = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
    n, c = len(gold), right.sum()
    spread = (n**2 - (said**2).sum()) * (n**2 - (there**2).sum())
    f1 = 2 * right / np.maximum(there + said, 1)
    return {
        "accuracy": float(c / n),
        "macro_f1": float(f1.mean()),
        "matthews": float((c * n - there @ said) / np.sqrt(spread)) if spread > 0 else 0.0,
    }


def _chunks(model: Model, data: Dataset, progress: Progress | None) -> Iterator[list[Encoding]]:
    """Encode 256 examples at a time, and report once they have been used."""
    for start in range(0, len(data.examples), 256):
        examples = data.examples[start : start + 256]
        yield [encode(model, example, data.task.evidence) for example in examples]
        if progress is not None:
            progress(f"scoring {data.split}", start + len(examples), len(data.examples))

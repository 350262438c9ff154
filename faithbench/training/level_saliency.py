"""How well a model's saliency agrees with rationales at each level (Ghaeini et al. 2019, 5.2-5.4).

A share of positive marked words alone proves little: a model can make all words positive. So the
share of the unmarked ones stands beside it, and two measures that only see the order of words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from faithbench.core.types import Bools, Encoding
from faithbench.data.dataset import Dataset
from faithbench.data.rationales import rationale_tokens
from faithbench.metrics.plausibility import auprc, tpr_drop
from faithbench.metrics.word_scores import WordScores, words_of
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.run.measures.rationale_erasure import labels_without_rationale
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingItem, collate_items
from faithbench.training.objectives.saliency import level_gradients, saliency

_ROWS = 32
"""Texts per pass."""


@dataclass(frozen=True)
class LevelFigures:
    """Agreement at one level, over the words of all texts with a rationale.

    `marked` and `unmarked` are the shares of marked and of other words with a positive score (the
    former is the paper's saliency accuracy), `top1` the share of texts whose highest score is a
    marked word's, and `auprc` the mean area under precision and recall of the scores.
    """

    marked: float
    unmarked: float
    top1: float
    auprc: float


@dataclass(frozen=True)
class ClassFigures:
    """Scores of one class against all others, and the accuracy over all classes."""

    precision: float
    recall: float
    f1: float
    accuracy: float


@dataclass(frozen=True)
class RemovalFigures:
    """Share of texts with a rationale whose label is found, before and after it is removed.

    `drop` is the part of the former that is lost.
    """

    before: float
    after: float
    drop: float | None


def measure_levels(
    model: Model, data: Dataset, score: str = "sum", of: str = "probability"
) -> dict[str, LevelFigures]:
    """Measure the saliency of the gold class at every level that the model has."""
    texts = level_words(model, data, score, of)
    return {name: level_figures(list(words.values())) for name, words in texts.items()}


def level_words(
    model: Model, data: Dataset, score: str = "sum", of: str = "probability"
) -> dict[str, dict[str, WordScores]]:
    """Return the saliency of words at every level, of each text with a rationale by its id."""
    make_readable(model, frozenset({"levels"}))
    texts: dict[str, dict[str, WordScores]] = {}
    for encodings in _batches(marked_encodings(model, data)):
        items = [TrainingItem(encoding, (encoding.example.label,)) for encoding in encodings]
        batch = collate_items(model, items, None)
        with torch.enable_grad():
            seen = forward(model, batch, frozenset({"levels"}))
            gradients = level_gradients(seen, batch.targets[:, 0], tuple(seen.levels), of)
        for name, gradient in gradients.items():
            rows = saliency(seen.levels[name], gradient, score).detach().double().cpu().numpy()
            texts.setdefault(name, {}).update(
                (
                    encoding.example.id,
                    words_of(encoding, row[: len(encoding.ids)][encoding.erasable]),
                )
                for encoding, row in zip(encodings, rows, strict=True)
            )
    return texts


def level_figures(texts: Sequence[WordScores]) -> LevelFigures:
    """Return the figures of texts, of which each has a rationale."""
    pairs = [(words.scores, words.rationale) for words in texts if words.rationale is not None]
    scores = np.concatenate([values for values, _ in pairs])
    marks = np.concatenate([marked for _, marked in pairs])
    areas = [area for words in texts if (area := auprc(words)) is not None]
    return LevelFigures(
        marked=_share(scores[marks] > 0),
        unmarked=_share(scores[~marks] > 0),
        # `argmax` takes the first of equal scores, as rankings do everywhere.
        top1=float(np.mean([marked[values.argmax()] for values, marked in pairs])),
        auprc=float(np.mean(areas)),
    )


def _share(values: Bools) -> float:
    return float(values.mean()) if len(values) else 0.0


def class_figures(predicted: Sequence[int], gold: Sequence[int], positive: int) -> ClassFigures:
    """Return precision, recall and F1 of one class, 0 where they have no denominator."""
    said, there = np.asarray(predicted) == positive, np.asarray(gold) == positive
    right = float((said & there).sum())
    return ClassFigures(
        precision=right / max(1, said.sum()),
        recall=right / max(1, there.sum()),
        f1=2 * right / max(1, said.sum() + there.sum()),
        accuracy=float((np.asarray(predicted) == np.asarray(gold)).mean()),
    )


def measure_removal(model: Model, data: Dataset) -> RemovalFigures:
    """Delete the rationales, and count the labels found before and after."""
    found = removal_outcomes(model, data)
    before, after = ([pair[place] for pair in found.values()] for place in (0, 1))
    return RemovalFigures(
        _share(np.array(before)), _share(np.array(after)), tpr_drop(before, after)
    )


def removal_outcomes(model: Model, data: Dataset) -> dict[str, tuple[bool, bool]]:
    """Return whether a text's label is found before and after its rationale is deleted, by id."""
    # A text that is all rationale would be empty: it is left out.
    encodings = [
        encoding
        for encoding in marked_encodings(model, data)
        if not rationale_tokens(encoding)[encoding.erasable].all()
    ]
    engine = Engine(model)
    pairs = zip(predictions(engine, encodings), encodings, strict=True)
    before = [prediction.target == encoding.example.label for prediction, encoding in pairs]
    after = [bool(right) for right in labels_without_rationale(engine, encodings, "delete")]
    ids = [encoding.example.id for encoding in encodings]
    return dict(zip(ids, zip(before, after, strict=True), strict=True))


def marked_encodings(model: Model, data: Dataset) -> list[Encoding]:
    """Return the texts of which the model reads some of the rationale, shortest first."""
    marked = (e for e in data.examples if e.rationale)
    encodings = (encode(model, example, data.task.evidence) for example in marked)
    read = [encoding for encoding in encodings if rationale_tokens(encoding).any()]
    return sorted(read, key=lambda encoding: len(encoding.ids))


def _batches(encodings: Sequence[Encoding]) -> Iterator[Sequence[Encoding]]:
    for start in range(0, len(encodings), _ROWS):
        yield encodings[start : start + _ROWS]

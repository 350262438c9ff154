"""Stability: do like examples get like explanations, and do other seeds and small noise?

`iou_*` compare each example with its three nearest of the same predicted class (Situ et al. 2021).
"""

from __future__ import annotations

from math import inf

import numpy as np

from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.overlaps import (
    WordSet,
    iou_labels_of_neighbours,
    iou_of_neighbours,
    labelled_words,
    seed_agreement,
    top_words,
)
from faithbench.metrics.registry import Measure, file_metric, table_metric
from faithbench.metrics.word_scores import WordScores


def _iou(table: ExplainedTexts, kind: str) -> list[float | None]:
    sets, near = _top(table.words), table.near(kind)
    return [iou_of_neighbours(place, sets, near) for place in range(len(sets))]


def _top(words: tuple[WordScores, ...]) -> list[WordSet]:
    return [top_words(own.strings, own.scores) for own in words]


@table_metric("iou_semantic", family="stability", higher_is_better=True, bounds=(0, 1))
def iou_semantic(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words with those of the 3 examples nearest in meaning."""
    return _iou(table, "semantic")


@table_metric("iou_lexical", family="stability", higher_is_better=True, bounds=(0, 1))
def iou_lexical(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words with those of the 3 examples nearest in wording."""
    return _iou(table, "lexical")


@table_metric(
    "iou_lexical:variant=l2e",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
)
def iou_lexical_l2e(table: ExplainedTexts) -> list[float | None]:
    """The same with neighbours of L2E's code: n-gram overlaps averaged, not added."""
    return _iou(table, "lexical-mean")


def _labels(
    table: ExplainedTexts, *, drop: bool = False, annotated: bool = False, released: bool = False
) -> list[float | None]:
    """Compare labelled words; an example without annotated words has none where those count."""
    said = []
    for own in table.words:
        marked = np.zeros(len(own.scores), bool) if own.rationale is None else own.rationale
        only = marked if annotated else None
        said.append(labelled_words(own.strings, own.scores, drop, only))
    near = table.near("semantic")
    return [iou_labels_of_neighbours(place, said, near, released) for place in range(len(said))]


@table_metric("iou_labels", family="stability", higher_is_better=True, bounds=(0, 1))
def iou_labels(table: ExplainedTexts) -> list[float | None]:
    """Overlap with the 3 nearest in meaning of words by sign and strength (L2E, Eq. 1)."""
    return _labels(table)


@table_metric(
    "iou_labels:words=content",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
)
def iou_labels_content(table: ExplainedTexts) -> list[float | None]:
    """The same without stop-words."""
    return _labels(table, drop=True)


@table_metric(
    "iou_labels:words=annotated",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
    need="rationale",
)
def iou_labels_annotated(table: ExplainedTexts) -> list[float | None]:
    """The same on words that rationales mark."""
    return _labels(table, annotated=True)


@table_metric(
    "iou_labels:variant=l2e",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
)
def iou_labels_l2e(table: ExplainedTexts) -> list[float | None]:
    """The same as L2E's code has it: two labels, by sign; 0 where nothing is labelled."""
    return _labels(table, released=True)


@table_metric(
    "seed_agreement", family="stability", higher_is_better=True, bounds=(0, 1), need="seeds"
)
def agreement_of_seeds(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words between seeds; none for explainers that do not draw."""
    by_seed = [_top(words) for words in table.seeds]
    return [seed_agreement(sets) for sets in zip(*by_seed, strict=True)]


file_metric(
    Measure(
        "max_sensitivity", "stability", False, 0.0, inf, 1,
        "Largest relative change of the scores under small noise on the embeddings (Yeh et al. "
        "2019), on up to 16 examples.",
    )
)  # fmt: skip

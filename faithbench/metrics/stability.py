"""Stability: do like examples get like explanations, and do other seeds and small noise?

`iou_*` compare each example with its three nearest of the same predicted class (Situ et al. 2021,
below called L2E). An explanation is read as words: the strings of an example's words, lower-cased,
with one score for each of them. What tables show is the overlap above chance, on content words
(see `overlap`): the raw overlap of L2E rewards explanations for choosing stop-words, which all
texts share. It is there on request, to reproduce published numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from math import inf

import numpy as np

from faithbench.core.erasure import top_count
from faithbench.core.types import Bools, Floats, Ints, rank
from faithbench.data.words import is_stop_word
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.overlap import (
    WordSet,
    iou,
    mean_of_known,
    mean_over_neighbours,
    overlaps_above_chance,
)
from faithbench.metrics.registry import metric
from faithbench.metrics.word_scores import WordScores

Labelled = tuple[WordSet, WordSet, WordSet, WordSet]
"""The words labelled high negative, low negative, low positive and high positive."""

HIGH_NEGATIVE, LOW_NEGATIVE, NEUTRAL, LOW_POSITIVE, HIGH_POSITIVE = range(5)
_SLACK = 1e-9


@metric(
    "iou_semantic",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(-1, 1),
    version=2,
    needs_encoder=True,
    headline=True,
    papers=("situ2021learning",),
)
def iou_semantic(table: ExplainedTexts) -> list[float | None]:
    """Overlap above chance of the top 30% content words with those of the 3 examples nearest in
    meaning.
    """
    return overlaps_above_chance(table, top_marks, table.neighbours("semantic"))


@metric(
    "iou_lexical",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(-1, 1),
    version=2,
    papers=("situ2021learning",),
)
def iou_lexical(table: ExplainedTexts) -> list[float | None]:
    """Overlap above chance of the top 30% content words with those of the 3 examples nearest in
    wording.
    """
    return overlaps_above_chance(table, top_marks, table.neighbours("lexical"))


@metric(
    "iou_labels",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(-1, 1),
    version=2,
    needs_encoder=True,
    papers=("situ2021learning",),
)
def iou_labels(table: ExplainedTexts) -> list[float | None]:
    """Overlap above chance, with the 3 nearest in meaning, of content words by sign and
    strength.
    """
    return overlaps_above_chance(table, label_marks, table.neighbours("semantic"))


@metric(
    "iou_semantic:variant=raw",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    needs_encoder=True,
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_semantic_raw(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words with those of the 3 examples nearest in meaning."""
    return mean_over_neighbours(_tops(table.words), table.neighbours("semantic"), iou)


@metric(
    "iou_lexical:variant=raw",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_lexical_raw(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words with those of the 3 examples nearest in wording."""
    return mean_over_neighbours(_tops(table.words), table.neighbours("lexical"), iou)


@metric(
    "iou_lexical:variant=l2e",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_lexical_l2e(table: ExplainedTexts) -> list[float | None]:
    """The same with neighbours of L2E's code: n-gram overlaps averaged, not added."""
    return mean_over_neighbours(_tops(table.words), table.neighbours("lexical-mean"), iou)


@metric(
    "iou_labels:variant=raw",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    needs_encoder=True,
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_labels_raw(table: ExplainedTexts) -> list[float | None]:
    """Overlap with the 3 nearest in meaning of words by sign and strength (L2E, Eq. 1)."""
    labelled = [labelled_words(words.strings, words.scores) for words in table.words]
    return mean_over_neighbours(labelled, table.neighbours("semantic"), iou_of_labels)


@metric(
    "iou_labels:words=content",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    needs_encoder=True,
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_labels_content(table: ExplainedTexts) -> list[float | None]:
    """The same without stop-words."""
    labelled = [
        labelled_words(words.strings, words.scores, drop_stop_words=True) for words in table.words
    ]
    return mean_over_neighbours(labelled, table.neighbours("semantic"), iou_of_labels)


@metric(
    "iou_labels:words=annotated",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    needs_encoder=True,
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_labels_annotated(table: ExplainedTexts) -> list[float | None]:
    """The same on words that rationales mark.

    An example without a rationale has no such words.
    """
    labelled = []
    for words in table.words:
        marked = np.zeros(len(words.scores), bool) if words.rationale is None else words.rationale
        labelled.append(labelled_words(words.strings, words.scores, only=marked))
    return mean_over_neighbours(labelled, table.neighbours("semantic"), iou_of_labels)


@metric(
    "iou_labels:variant=l2e",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    needs_encoder=True,
    opt_in=True,
    papers=("situ2021learning",),
)
def iou_labels_l2e(table: ExplainedTexts) -> list[float | None]:
    """The same as L2E's code has it: two labels, by sign; 0 where nothing is labelled."""
    labelled = [labelled_words(words.strings, words.scores) for words in table.words]
    return mean_over_neighbours(labelled, table.neighbours("semantic"), iou_of_signs)


@metric(
    "seed_agreement",
    kind="table",
    family="stability",
    higher_is_better=True,
    bounds=(0, 1),
    need="seeds",
)
def seed_agreement(table: ExplainedTexts) -> list[float | None]:
    """Overlap of the top 30% words between seeds; none for explainers that do not draw."""
    by_seed = [_tops(words) for words in table.seeds]
    return [mean_iou_of_pairs(sets) for sets in zip(*by_seed, strict=True)]


@metric(
    "max_sensitivity",
    kind="measure",
    per_example=True,
    family="stability",
    higher_is_better=False,
    bounds=(0.0, inf),
    papers=("yeh2019infidelity",),
)
def largest_change(windows: Sequence[float | None]) -> float | None:
    """Largest relative change of the scores under small noise on the embeddings (Yeh et al.
    2019), on up to 16 examples.

    A text read in windows has that of the most sensitive one; None where no window has any.
    """
    return max((change for change in windows if change is not None), default=None)


def top_words(strings: Sequence[str], scores: Floats, share: float = 0.3) -> WordSet:
    """Return the strings of the top share of words, rounded half up, at least one word.

    Words are ranked one by one: a string that is there twice among the best counts twice towards
    the share and once in the set.
    """
    marks = top_marks(_one_per_word(strings, scores), share)
    return frozenset(strings[index] for index in np.flatnonzero(marks).tolist())


def top_marks(scores: Floats, share: float = 0.3) -> Ints:
    """Mark the top share of words with 1, rounded half up, at least one word."""
    marks = np.zeros(len(scores), dtype=np.int64)
    if len(scores):
        # To 12 digits, so that 30% is 30 and not a hair more or less.
        count = top_count(len(scores), round(100 * share, 12))
        marks[rank(scores)[:count]] = 1
    return marks


def label_marks(scores: Floats) -> Ints:
    """Mark each word by its sign and strength: from -2, high negative, to 2; neutral is 0."""
    return five_labels(scores) - NEUTRAL


def mean_iou_of_pairs(sets: Sequence[WordSet]) -> float | None:
    """Return the mean IoU over all pairs of sets; None for fewer than two, or empty unions."""
    return mean_of_known([iou(a, b) for a, b in combinations(sets, 2)])


def five_labels(scores: Floats) -> Ints:
    """Label each word from 0, high negative, to 4, high positive.

    L2E, the heuristic h of its sequence labelling: positive scores above the mean of the
    positive ones are high, negative ones below the mean of the negative ones too; exactly 0 is
    neutral. A score at the mean, a single one of its sign always, is low; scores within 1e-9
    of it count as at the mean, so that rounding does not decide.
    """
    labels = np.full(len(scores), NEUTRAL, dtype=np.int64)
    for sign, low, high in ((1, LOW_POSITIVE, HIGH_POSITIVE), (-1, LOW_NEGATIVE, HIGH_NEGATIVE)):
        sizes = sign * np.asarray(scores, dtype=np.float64)
        of_sign = sizes > 0
        if of_sign.any():
            cut = math.fsum(sizes[of_sign]) / int(of_sign.sum()) * (1 + _SLACK)
            labels[of_sign] = np.where(sizes[of_sign] > cut, high, low)
    return labels


def labelled_words(
    strings: Sequence[str],
    scores: Floats,
    drop_stop_words: bool = False,
    only: Bools | None = None,
) -> Labelled:
    """Return the strings of each label but neutral.

    All words are labelled first; then stop-words are dropped, if asked, and words that are not
    marked in `only` (one mark per word: the annotated ones), as in L2E, Table 5.
    """
    labels = five_labels(_one_per_word(strings, scores))
    kept = np.ones(len(strings), dtype=bool) if only is None else np.asarray(only, dtype=bool)
    if len(kept) != len(strings):
        raise ValueError(f"{len(kept)} marks for {len(strings)} words")
    if drop_stop_words:
        kept = kept & np.array([not is_stop_word(word) for word in strings], dtype=bool)

    def of(label: int) -> WordSet:
        return frozenset(
            strings[index] for index in np.flatnonzero(kept & (labels == label)).tolist()
        )

    return of(HIGH_NEGATIVE), of(LOW_NEGATIVE), of(LOW_POSITIVE), of(HIGH_POSITIVE)


def iou_of_labels(a: Labelled, b: Labelled) -> float | None:
    """Return the sum of intersections over the sum of unions of equally labelled words.

    L2E, Eq. 1, for one neighbour; None where all unions are empty.
    """
    return _ratio(a, b)


def iou_of_signs(a: Labelled, b: Labelled) -> float:
    """Return the same with high and low as one label each; 0 where all unions are empty."""
    return _ratio(*((x[0] | x[1], x[2] | x[3]) for x in (a, b))) or 0.0


def _ratio(a: Sequence[WordSet], b: Sequence[WordSet]) -> float | None:
    """Return shared words over all words, set by set."""
    pairs = list(zip(a, b, strict=True))
    union = sum(len(x | y) for x, y in pairs)
    return sum(len(x & y) for x, y in pairs) / union if union else None


def _tops(examples: Sequence[WordScores]) -> list[WordSet]:
    return [top_words(words.strings, words.scores) for words in examples]


def _one_per_word(strings: Sequence[str], scores: Floats) -> Floats:
    """Return the scores, refusing a number of them that is not that of the words."""
    if len(strings) != len(scores):
        raise ValueError(f"{len(scores)} scores for {len(strings)} words")
    return np.asarray(scores, dtype=np.float64)

"""Stability: do similar examples, or other seeds, get similar explanations?

An explanation is read as words: `strings` are an example's words, lower-cased, and `scores`
has one number for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np

from faithbench.core.erasure import top_count
from faithbench.core.types import Bools, Floats, Ints, rank
from faithbench.data.words import is_stop_word

WordSet = frozenset[str]
Labelled = tuple[WordSet, WordSet, WordSet, WordSet]
"""The words labelled high negative, low negative, low positive and high positive."""

HIGH_NEGATIVE, LOW_NEGATIVE, NEUTRAL, LOW_POSITIVE, HIGH_POSITIVE = range(5)
_SLACK = 1e-9

Said = TypeVar("Said", WordSet, Labelled)


def top_words(strings: Sequence[str], scores: Floats, share: float = 0.3) -> WordSet:
    """Return the strings of the top share of words, rounded half up, at least one word.

    Words are ranked by place: a string that stands twice among the best counts twice towards
    the share and once in the set.
    """
    if not len(strings):
        return frozenset()
    # To 12 digits, so that 30% is 30 and not a hair more or less.
    count = top_count(len(strings), round(100 * share, 12))
    return frozenset(strings[place] for place in rank(_checked(strings, scores))[:count])


def iou(a: WordSet, b: WordSet) -> float | None:
    """Return intersection over union of two sets; None where both are empty."""
    union = len(a | b)
    return len(a & b) / union if union else None


def iou_of_neighbours(
    index: int, sets: Sequence[WordSet], neighbours: Sequence[Sequence[int]]
) -> float | None:
    """Return the mean IoU of an example's words and each neighbour's.

    Neighbours with an empty union are left out; None where that leaves none.
    """
    return _mean_over(index, sets, neighbours, iou)


def seed_agreement(sets: Sequence[WordSet]) -> float | None:
    """Return the mean IoU over all pairs of seeds; None for fewer than two, or empty unions."""
    return _mean([iou(a, b) for a, b in combinations(sets, 2)])


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
        mine = sizes > 0
        if mine.any():
            cut = math.fsum(sizes[mine]) / int(mine.sum()) * (1 + _SLACK)
            labels[mine] = np.where(sizes[mine] > cut, high, low)
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
    labels = five_labels(_checked(strings, scores))
    kept = np.ones(len(strings), dtype=bool) if only is None else np.asarray(only, dtype=bool)
    if len(kept) != len(strings):
        raise ValueError(f"{len(kept)} marks for {len(strings)} words")
    if drop_stop_words:
        kept = kept & np.array([not is_stop_word(word) for word in strings], dtype=bool)

    def of(label: int) -> WordSet:
        return frozenset(
            strings[place] for place in np.flatnonzero(kept & (labels == label)).tolist()
        )

    return of(HIGH_NEGATIVE), of(LOW_NEGATIVE), of(LOW_POSITIVE), of(HIGH_POSITIVE)


def iou_labels(a: Labelled, b: Labelled, released: bool = False) -> float | None:
    """Return the sum of intersections over the sum of unions of equally labelled words.

    L2E, Eq. 1, for one neighbour; None where all unions are empty. As `released`, high and low
    are one label each for positive and negative, and empty unions give 0.
    """
    if released:
        merged = [(x[0] | x[1], x[2] | x[3]) for x in (a, b)]
        return _ratio(*merged) or 0.0
    return _ratio(a, b)


def iou_labels_of_neighbours(
    index: int,
    labelled: Sequence[Labelled],
    neighbours: Sequence[Sequence[int]],
    released: bool = False,
) -> float | None:
    """Return the mean of `iou_labels` over an example's neighbours (L2E, Eq. 1).

    Neighbours with empty unions are left out; None where that leaves none.
    """
    return _mean_over(index, labelled, neighbours, lambda a, b: iou_labels(a, b, released))


def _ratio(a: Sequence[WordSet], b: Sequence[WordSet]) -> float | None:
    pairs = list(zip(a, b, strict=True))
    union = sum(len(x | y) for x, y in pairs)
    return sum(len(x & y) for x, y in pairs) / union if union else None


def _mean_over(
    index: int,
    said: Sequence[Said],
    neighbours: Sequence[Sequence[int]],
    compare: Callable[[Said, Said], float | None],
) -> float | None:
    return _mean([compare(said[index], said[other]) for other in neighbours[index]])


def _mean(values: Sequence[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return math.fsum(there) / len(there) if there else None


def _checked(strings: Sequence[str], scores: Floats) -> Floats:
    if len(strings) != len(scores):
        raise ValueError(f"{len(scores)} scores for {len(strings)} words")
    return np.asarray(scores, dtype=np.float64)

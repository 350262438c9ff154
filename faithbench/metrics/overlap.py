"""Overlap of an example's explanation with those of its neighbours, as it is and above chance.

An explanation is read as the words that it marks: the top ones, or all those of a sign and
strength. Chance is what is left of the overlap when one of the two explanations loses its hold
on the text: its marks are shuffled among the words of its text, so that it marks as many words
as before, but any of them. An explanation that does not depend on the words has an overlap
above chance of 0 on average, whatever the texts share and however often words are repeated.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from faithbench.core.types import Floats, Ints
from faithbench.data.words import is_content_word
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.neighbours import Neighbours
from faithbench.metrics.word_scores import WordScores

DRAWS = 50
"""Number of times that the marks of each text are shuffled."""

WordSet = frozenset[str]
Marks = frozenset[tuple[str, int]]
"""Marked words, each with its mark: a word of two marks is there twice."""

Explanation = TypeVar("Explanation")
Element = TypeVar("Element")


def iou(a: frozenset[Element], b: frozenset[Element]) -> float | None:
    """Return intersection over union of two sets; None where both are empty."""
    shared = len(a & b)
    union = len(a) + len(b) - shared
    return shared / union if union else None


def mean_over_neighbours(
    explanations: Sequence[Explanation],
    neighbours: Neighbours,
    compare: Callable[[Explanation, Explanation], float | None],
) -> list[float | None]:
    """Compare each example's explanation with those of its neighbours, and average.

    Neighbours without a value, whose union is empty, are left out; None where that leaves none.
    """
    return [
        mean_of_known([compare(own, explanations[other]) for other in others])
        for own, others in zip(explanations, neighbours, strict=True)
    ]


def mean_of_known(values: Sequence[float | None]) -> float | None:
    """Return the mean of the values that are there; None if none is."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


@dataclass(frozen=True)
class Marked:
    """The marked words of a text, and what they become with the marks shuffled."""

    own: Marks
    shuffled: tuple[Marks, ...]


def overlaps_above_chance(
    table: ExplainedTexts, mark: Callable[[Floats], Ints], neighbours: Neighbours
) -> list[float | None]:
    """Return each example's mean overlap above chance with its neighbours, on content words.

    `mark` turns the scores of a text's content words into marks, 0 for a word that has none.
    """
    texts = [
        marked_text(example.id, words, mark)
        for example, words in zip(table.examples, table.words, strict=True)
    ]
    return mean_over_neighbours(texts, neighbours, above_chance)


def marked_text(name: str, words: WordScores, mark: Callable[[Floats], Ints]) -> Marked:
    """Mark the content words of a text, and shuffle the marks by draws that its id decides.

    The draws depend on nothing else: not on the explainer, its seed, or the other texts.
    """
    content = np.array([is_content_word(word) for word in words.strings], dtype=bool)
    strings = [words.strings[index] for index in np.flatnonzero(content)]
    marks = mark(words.scores[content])
    seed = int.from_bytes(hashlib.sha256(f"shuffled marks:{name}".encode()).digest()[:8])
    draw = np.random.default_rng(seed)
    orders = draw.permuted(np.tile(np.arange(len(strings)), (DRAWS, 1)), axis=1)
    return Marked(_marks(strings, marks), tuple(_marks(strings, marks[order]) for order in orders))


def above_chance(a: Marked, b: Marked) -> float | None:
    """Return the overlap of two explanations minus the mean overlap of one with the other shuffled.

    None where one of them marks nothing.
    """
    overlap = iou(a.own, b.own)
    if overlap is None or not a.own or not b.own:
        return None
    chance = [iou(a.own, other) for other in b.shuffled]
    chance += [iou(other, b.own) for other in a.shuffled]
    return overlap - (mean_of_known(chance) or 0.0)


def _marks(strings: Sequence[str], marks: Ints) -> Marks:
    pairs = zip(strings, marks.tolist(), strict=True)
    return frozenset((word, mark) for word, mark in pairs if mark)

"""What word and table metrics see: the words of all examples with an explainer's scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from faithbench.core.types import Example
from faithbench.metrics.neighbours import Likeness, Neighbours
from faithbench.metrics.word_scores import (
    WordScores,
    by_sentence,
    mean_rationale_share,
    with_mean_share,
)

FindNeighbours = Callable[[Likeness], Neighbours]
"""Finds the neighbours of all examples, by a likeness."""

Unit = Literal["words", "sentences"]


@dataclass(frozen=True)
class ExplainedTexts:
    """All examples under one explainer.

    `words` has an entry per example, under one seed; `seeds` has those of every seed.
    Neighbours are found when they are first asked for.
    """

    words: tuple[WordScores, ...]
    seeds: tuple[tuple[WordScores, ...], ...]
    examples: tuple[Example, ...]
    neighbours: FindNeighbours

    @staticmethod
    def of_seeds(
        seeds: Sequence[Sequence[WordScores]],
        examples: Sequence[Example],
        neighbours: FindNeighbours,
    ) -> ExplainedTexts:
        """Join the words of all examples under every seed, the first of which is shown."""
        every = tuple(with_mean_share(words) for words in seeds)
        return ExplainedTexts(every[0], every, tuple(examples), neighbours)

    def by_seed(self) -> tuple[ExplainedTexts, ...]:
        """Return the same texts once per seed, with that seed's words."""
        return tuple(replace(self, words=words) for words in self.seeds)

    def units(self, unit: Unit) -> tuple[WordScores, ...]:
        """Return what word metrics are mapped over: an entry per example."""
        return self.words if unit == "words" else self.sentences

    @cached_property
    def sentences(self) -> tuple[WordScores, ...]:
        """The sentences of each example, as if they were words."""
        return with_mean_share(
            [
                by_sentence(words, example.text, example.text_b or "")
                for words, example in zip(self.words, self.examples, strict=True)
            ]
        )

    @cached_property
    def share(self) -> float | None:
        """The mean share of words that rationales mark."""
        return mean_rationale_share(self.words)

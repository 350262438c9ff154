"""What table metrics see: the words of all examples with an explainer's scores, and who is near."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from faithbench.core.types import Example
from faithbench.metrics.neighbours import Neighbours
from faithbench.metrics.word_scores import WordScores, by_sentence, mean_rationale_share

Near = Callable[[str], Neighbours]
"""Finds neighbours by kind: semantic, lexical, or lexical-mean."""


@dataclass(frozen=True)
class ExplainedTexts:
    """All examples under one explainer.

    `words` has an entry per example, under one seed; `seeds` has those of every seed.
    Neighbours are found when they are first asked for.
    """

    words: tuple[WordScores, ...]
    seeds: tuple[tuple[WordScores, ...], ...]
    examples: tuple[Example, ...]
    near: Near

    @cached_property
    def sentences(self) -> tuple[WordScores, ...]:
        """The sentences of each example, as if they were words."""
        return tuple(
            by_sentence(words, example.text, example.text_b or "")
            for words, example in zip(self.words, self.examples, strict=True)
        )

    @cached_property
    def share(self) -> float | None:
        """The mean share of words that rationales mark."""
        return mean_rationale_share(self.words)

    @cached_property
    def sentence_share(self) -> float | None:
        """The mean share of sentences that rationales mark."""
        return mean_rationale_share(self.sentences)

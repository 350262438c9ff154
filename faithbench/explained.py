"""What table metrics see: the words of all examples with an explainer's scores, and who is near."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from faithbench.neighbours import Neighbours
from faithbench.plausibility import mean_rationale_share
from faithbench.rows import Row
from faithbench.types import Encoding, Example
from faithbench.word_scores import Words, by_sentence, words_of

if TYPE_CHECKING:
    from faithbench.metrics import TableMetric

Near = Callable[[str], Neighbours]
"""Finds neighbours by kind: semantic, lexical, or lexical-mean."""


@dataclass(frozen=True)
class Explained:
    """All examples under one explainer.

    `words` has an entry per example, under one seed; `seeds` has those of every seed.
    Neighbours are found when they are first asked for.
    """

    words: tuple[Words, ...]
    seeds: tuple[tuple[Words, ...], ...]
    examples: tuple[Example, ...]
    near: Near

    @cached_property
    def sentences(self) -> tuple[Words, ...]:
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


def explained_of(encodings: Sequence[Encoding], rows: Sequence[Row], near: Near) -> Explained:
    """Read the words back from the rows of a run, scores rounded as they are there."""
    seeds = tuple(
        tuple(
            words_of(encoding, np.array((row.scores, *row.more_scores)[seed], dtype=np.float64))
            for encoding, row in zip(encodings, rows, strict=True)
        )
        for seed in range(1 + len(rows[0].more_scores))
    )
    return Explained(seeds[0], seeds, tuple(e.example for e in encodings), near)


def table_values(
    metrics: Sequence[TableMetric], table: Explained
) -> list[dict[str, list[float | None]]]:
    """Return for each example each metric's value under every seed.

    A metric that compares the seeds has one value for all of them.
    """
    found: list[dict[str, list[float | None]]] = [{} for _ in table.words]
    for metric in metrics:
        views = [table] if metric.need == "seeds" else [_under(table, own) for own in table.seeds]
        for place, own in enumerate(zip(*(metric.values(view) for view in views), strict=True)):
            found[place][metric.name] = list(own)
    return found


def _under(table: Explained, words: tuple[Words, ...]) -> Explained:
    return replace(table, words=words)

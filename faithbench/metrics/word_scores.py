"""What word-level metrics see of an example: its words, their scores, and which are marked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from faithbench.core.types import Bools, Encoding, Floats, Ints, Span
from faithbench.data.rationales import overlaps
from faithbench.data.sentences import sentence_spans
from faithbench.data.words import word_spans


@dataclass(frozen=True, eq=False)
class WordScores:
    """The words of the evidence that a model reads, in reading order, text before text_b.

    `strings` are in lower case; `spans` are characters of the text that the word is in, which
    is text_b for the last `second` words. `rationale` marks words, and is None where none is.
    `share` is the mean share of marked words over all examples: how many words an explanation
    may choose. It is None where no example has a rationale.
    """

    scores: Floats
    strings: tuple[str, ...]
    spans: tuple[Span, ...]
    rationale: Bools | None
    second: int = 0
    share: float | None = None


def words_of(encoding: Encoding, scores: Floats) -> WordScores:
    """Join the scores of the erasable tokens, as a row holds them, into those of words.

    A word's score is the sum over its tokens (docs/protocol.md, Words). Words without a token of
    their own have none: those that truncation cut off, and a mark that the tokenizer joined to
    the word before it.
    """
    example = encoding.example
    of_token = encoding.words[encoding.erasable]
    inside = of_token >= 0
    # Words without a token are not in `read`: the sums are numbered like the words that are.
    read, number = np.unique(of_token[inside], return_inverse=True)
    sums = np.bincount(number, weights=scores[inside], minlength=len(read))
    first = len(encoding.word_spans) - len(word_spans(example.text_b or ""))
    marked = overlaps(encoding.word_spans, example.rationale or ())
    marked[first:] = False
    spans = tuple(encoding.word_spans[word] for word in read)
    texts = [example.text if word < first else example.text_b or "" for word in read]
    return WordScores(
        scores=sums.astype(np.float64),
        strings=tuple(text[slice(*span)].lower() for text, span in zip(texts, spans, strict=True)),
        spans=spans,
        rationale=marked[read] if marked[read].any() else None,
        second=int((read >= first).sum()),
    )


def by_sentence(words: WordScores, text: str, text_b: str = "") -> WordScores:
    """Return one entry per sentence that has a word: its highest score, marked if a word is."""
    first = len(words.spans) - words.second
    sentences, later = sentence_spans(text), sentence_spans(text_b)
    homes = np.concatenate(
        [
            _homes(words.spans[:first], sentences),
            _homes(words.spans[first:], later) + len(sentences),
        ]
    )
    read = np.unique(homes)
    members = [homes == home for home in read]
    spans = tuple((*sentences, *later)[home] for home in read)
    texts = [text if home < len(sentences) else text_b for home in read]
    marked = words.rationale
    return WordScores(
        scores=np.array([words.scores[inside].max() for inside in members], dtype=np.float64),
        strings=tuple(text[slice(*span)].lower() for text, span in zip(texts, spans, strict=True)),
        spans=spans,
        rationale=None if marked is None else np.array([marked[i].any() for i in members]),
        second=int((read >= len(sentences)).sum()),
    )


def _homes(words: Sequence[Span], sentences: Sequence[Span]) -> Ints:
    """Return for each word the index of the sentence that holds it."""
    starts = np.array([start for start, _ in sentences], dtype=np.int64)
    word_starts = np.array([start for start, _ in words], dtype=np.int64)
    # The last sentence that begins at or before the word.
    return np.searchsorted(starts, word_starts, side="right") - 1


def mean_rationale_share(examples: Iterable[WordScores]) -> float | None:
    """Return the mean share of marked words of the examples that have a rationale."""
    shares = [float(words.rationale.mean()) for words in examples if words.rationale is not None]
    return math.fsum(shares) / len(shares) if shares else None


def with_mean_share(examples: Sequence[WordScores]) -> tuple[WordScores, ...]:
    """Tell each example the mean share of marked words, which all of them decide together."""
    share = mean_rationale_share(examples)
    return tuple(replace(words, share=share) for words in examples)

"""Rationales on words and tokens: which are marked, and which of them a model reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.types import Bools, Encoding, Span
from faithbench.data.words import word_spans


@dataclass(frozen=True)
class Coverage:
    """How many rationale spans a model reads whole, in part (cut where its input ends), or not."""

    whole: int = 0
    cut: int = 0
    lost: int = 0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.whole + other.whole, self.cut + other.cut, self.lost + other.lost)

    def __str__(self) -> str:
        total = self.whole + self.cut + self.lost
        return f"{total} spans: {self.whole} read whole, {self.cut} cut, {self.lost} not read"


def rationale_tokens(encoding: Encoding) -> Bools:
    """Mark the tokens of the text that share a character with the rationale.

    Special tokens, tokens of the second text and tokens of nothing but space are never marked.
    """
    marked = overlaps(encoding.spans, encoding.example.rationale or ())
    return marked & _in_text(encoding)


def overlaps(pieces: Sequence[Span], spans: Sequence[Span]) -> Bools:
    """Return for each piece of a text whether it shares a character with one of the spans."""
    starts = np.array([start for start, _ in spans], dtype=np.int64)
    ends = np.array([end for _, end in spans], dtype=np.int64)
    left = np.array([start for start, _ in pieces], dtype=np.int64)
    right = np.array([end for _, end in pieces], dtype=np.int64)
    # Spans are sorted and do not overlap. Of those that begin before the piece ends, take away
    # those that have ended when it starts: if any is left, it overlaps.
    return np.searchsorted(starts, right, side="left") > np.searchsorted(ends, left, side="right")


def rationale_coverage(encodings: Iterable[Encoding]) -> Coverage:
    """Count the rationale spans of all examples by how much of them the model reads."""
    return sum((_coverage(encoding) for encoding in encodings), Coverage())


def _coverage(encoding: Encoding) -> Coverage:
    """Count the rationale spans of one example."""
    tokens = np.flatnonzero(_in_text(encoding))
    end = max((encoding.spans[token][1] for token in tokens), default=0)
    counts = {"whole": 0, "cut": 0, "lost": 0}
    for start, stop in encoding.example.rationale or ():
        # White space at the end of a span is read by no model, and missed by none.
        last = start + len(encoding.example.text[start:stop].rstrip())
        counts["whole" if last <= end else "cut" if start < end else "lost"] += 1
    return Coverage(**counts)


def _in_text(encoding: Encoding) -> Bools:
    """Mark tokens that belong to a word of the first text."""
    count = len(word_spans(encoding.example.text))
    return (encoding.words >= 0) & (encoding.words < count)


def without_rationale(encoding: Encoding) -> Bools | None:
    """Return the keep-mask, one entry per token, that erases the rationale from the evidence.

    None where the model reads no token of it that may be erased.
    """
    erased = rationale_tokens(encoding) & encoding.erasable
    return ~erased if erased.any() else None

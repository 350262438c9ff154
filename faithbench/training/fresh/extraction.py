"""Rationales out of scores: the words of a text that FRESH keeps (Jain et al. 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Bools, Encoding, Example, Floats, Ints, Span, rank
from faithbench.data.words import word_spans

Selection = Literal["topk", "contiguous"]
Form = Literal["paper", "released"]


@dataclass(frozen=True)
class Extraction:
    """How many words of a text are kept, and which.

    - `ratio`: the share of the words, rounded up.
    - `selection`: the words with the highest scores (`topk`), or the stretch of as many words
      with the highest sum (`contiguous`).
    - `form`: that of the paper, or that of the code released with SaLoss. The latter takes its
      share of the word pieces but one, never chooses the last word, and puts the top words in
      the order of their scores.
    """

    ratio: float
    selection: Selection = "topk"
    form: Form = "paper"

    def __post_init__(self) -> None:
        """Refuse what is no share and no known way to choose."""
        if not 0 < self.ratio <= 1:  # NaN is not, either
            raise FaithbenchError(
                f"--ratio {self.ratio:g} should be a share of the words: above 0, at most 1"
            )
        for noun, value, known in (
            ("selection of words", self.selection, get_args(Selection)),
            ("form of FRESH", self.form, get_args(Form)),
        ):
            if value not in known:
                raise unknown(noun, value, known)


def kept_count(ratio: float, units: int) -> int:
    """Return how many of some units are kept: their share, rounded up, at least one."""
    # Rounded first, because .7 * 10 is a little more than 7.
    return max(1, math.ceil(round(ratio * units, 9)))


def top_words(scores: Floats, count: int) -> Ints:
    """Return the indices of the highest scores, highest first; ties go to the earlier one."""
    return rank(scores)[:count]


def best_window(scores: Floats, count: int) -> Ints:
    """Return the indices of the neighbours with the highest sum; of equal sums the first."""
    sums = np.lib.stride_tricks.sliding_window_view(scores, min(count, len(scores))).sum(axis=1)
    # Equal sums may differ in the last bit, by the order in which they are added up.
    size = np.abs(scores[np.isfinite(scores)]).max(initial=0) or 1.0
    start = int(np.argmax(np.round(sums / size, 12)))
    return np.arange(start, start + min(count, len(scores)))


def choose(scores: Floats, count: int, selection: Selection) -> Ints:
    """Return the indices of the words that a selection takes."""
    return top_words(scores, count) if selection == "topk" else best_window(scores, count)


def rationale(
    encoding: Encoding, scores: Floats, how: Extraction, unknown_id: int | None = None
) -> Example:
    """Return an example with the rationale in the place of its evidence.

    `scores` are those of the erasable tokens, as rows keep them; a word has the sum over its
    tokens. Each text that may be erased is cut by itself, and a query stays whole. Words of
    `unknown_id` alone are passed over if nothing else would be left: no classifier could read
    them.
    """
    example = encoding.example
    of_token = encoding.words[encoding.erasable]
    inside = of_token >= 0
    known = encoding.ids[encoding.erasable] != (-1 if unknown_id is None else unknown_id)
    first = len(word_spans(example.text))  # the words of text_b are numbered after these
    texts = {"text": of_token < first, "text_b": of_token >= first}
    cut: dict[str, str] = {}
    for field, on_side in texts.items():
        tokens = inside & on_side
        if not tokens.any():
            continue
        words, number = np.unique(of_token[tokens], return_inverse=True)
        sums = np.bincount(number, weights=scores[tokens]).astype(np.float64)
        readable = np.bincount(number, weights=known[tokens]) > 0
        kept = words[_kept(sums, readable, int(tokens.sum()), how)]
        spans = [encoding.word_spans[word] for word in kept]
        cut[field] = _joined(getattr(example, field), spans)
    if not cut:
        raise FaithbenchError(
            f"example {example.id!r}: the support model reads no word of the evidence "
            f"{example.text[:40]!r}, so that there is no rationale; leave the example out"
        )
    text, text_b = cut.get("text", example.text), cut.get("text_b", example.text_b)
    return replace(example, text=text, text_b=text_b, rationale=None)


def _kept(scores: Floats, readable: Bools, pieces: int, how: Extraction) -> Ints:
    """Return the indices of the words to keep, in the order in which they are written."""
    count = kept_count(how.ratio, len(scores))
    if how.form == "released":
        count = min(kept_count(how.ratio, pieces - 1), len(scores))
        scores = np.append(scores[:-1], -np.inf)
    chosen = choose(scores, count, how.selection)
    if readable.any() and not readable[chosen].any():
        others = np.flatnonzero(readable)
        chosen = others[choose(scores[others], count, how.selection)]
    return chosen if how.form == "released" else np.sort(chosen)


def _joined(text: str, spans: list[Span]) -> str:
    return " ".join(text[start:end] for start, end in spans)

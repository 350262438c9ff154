"""Answers of a question answerer: spans of tokens, their text, and SQuAD's two scores."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

from faithbench.core.types import Encoding, Floats, Span

LONGEST = 30
"""An answer has at most so many tokens, as in the published evaluations of SQuAD."""


def best_span(
    encoding: Encoding, starts: Floats, ends: Floats, *, may_be_none: bool = False
) -> Span | None:
    """Return the first and last token of the most probable answer among the evidence.

    `starts` and `ends` are log-probabilities by token position; both are added. The end is
    not before the start, and an answer has at most LONGEST tokens. With `may_be_none`, None
    is returned where position 0 (no answer) is more probable than any span. Ties go to the
    earlier start, then the shorter answer.
    """
    places = np.flatnonzero(encoding.erasable)
    size = len(encoding.ids)
    lengths = np.arange(LONGEST)
    last = places[:, None] + lengths
    inside = last < size
    last = np.minimum(last, size - 1)
    allowed = inside & encoding.erasable[last]
    sums = np.where(allowed, starts[places][:, None] + ends[last], -np.inf)
    row, column = np.unravel_index(int(np.argmax(sums)), sums.shape)
    if may_be_none and starts[0] + ends[0] > sums[row, column]:
        return None
    first = int(places[row])
    return first, first + int(column)


def span_text(encoding: Encoding, span: Span | None) -> str:
    """Return the characters from the first token to the last; nothing for no answer."""
    if span is None:
        return ""
    return encoding.example.text[encoding.spans[span[0]][0] : encoding.spans[span[1]][1]]


def normalise(answer: str) -> str:
    """Lower the case, drop punctuation and the articles a, an, the, and close up blanks."""
    bare = "".join(c for c in answer.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def exact_match(found: str, accepted: Sequence[str]) -> float:
    """Return 1 if the normalised answer is one of those accepted; none accepted means none."""
    return float(normalise(found) in {normalise(answer) for answer in accepted or ("",)})


def overlap_f1(found: str, accepted: Sequence[str]) -> float:
    """Return the best F1 of shared words with an accepted answer; two empty answers agree."""
    return max(_f1(normalise(found).split(), normalise(a).split()) for a in accepted or ("",))


def _f1(found: list[str], gold: list[str]) -> float:
    if not found or not gold:
        return float(found == gold)
    shared = sum((Counter(found) & Counter(gold)).values())
    return 2 * shared / (len(found) + len(gold))

"""Documents longer than the model's input: read in overlapping windows, folded back into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

from faithbench.core.erasure import Operator, erase_tokens
from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Attribution, Bools, Encoding, Ints, TokenRow

Number = TypeVar("Number", int, float)

OVERLAP = 128
LEAST = 16
"""A window must have room for so many tokens of the text."""


def cut_windows(fixed: Ints, text: Ints, longest: int, name: str) -> tuple[Ints, ...]:
    """Return the positions that each window reads, in order: part of the text, all of the rest.

    Neighbours share OVERLAP tokens of the text, or half a window if that is less; the last
    window is as long as the others and ends with the text.
    """
    room = longest - len(fixed)
    if room < LEAST:
        raise FaithbenchError(
            f"example {name!r}: what is not windowed takes {len(fixed)} of the model's {longest} "
            "tokens and leaves no room for the text; shorten its second text"
        )
    step = room - min(OVERLAP, room // 2)
    last = max(0, len(text) - room)
    starts = [*range(0, last, step), last]
    return tuple(np.sort(np.concatenate([fixed, text[s : s + room]])) for s in starts)


def rows_of(encoding: Encoding) -> list[TokenRow]:
    """Return the rows of a full input: one, or one per window."""
    return [(part.ids, part.types) for part in inputs_read(encoding)]


def inputs_read(encoding: Encoding) -> tuple[Encoding, ...]:
    """Return the encodings a model reads: one per window, or the encoding itself."""
    if not encoding.windows:
        return (encoding,)
    return tuple(_part(encoding, places) for places in encoding.windows)


def parts_of(encoding: Encoding) -> tuple[Encoding, ...]:
    """Return the encodings that are explained one by one: windows, but all choices as one."""
    return (encoding,) if encoding.joint else inputs_read(encoding)


def row_of_choice(encoding: Encoding, choice: int) -> Encoding:
    """Return the row that reads one choice of a joint encoding, with those of the others."""
    rows = inputs_read(encoding)
    others = (*rows[:choice], *rows[choice + 1 :])
    return dataclasses.replace(rows[choice], choice=choice, others=others)


def _part(whole: Encoding, places: Ints) -> Encoding:
    return dataclasses.replace(
        whole,
        ids=whole.ids[places],
        types=whole.types[places],
        erasable=whole.erasable[places],
        words=whole.words[places],
        spans=tuple(whole.spans[place] for place in places),
        windows=(),
        joint=False,
    )


def erased_rows(
    encoding: Encoding, keep: Bools, operator: Operator, token_id: int
) -> tuple[TokenRow, ...]:
    """Return the rows of an erased input, one per window; a token goes from all that read it."""
    return tuple(
        erase_tokens(part, keep[places], operator, token_id)
        for part, places in zip(inputs_read(encoding), _places(encoding), strict=True)
    )


def _places(encoding: Encoding) -> tuple[Ints, ...]:
    return encoding.windows or (np.arange(len(encoding.ids)),)


def fold(encodings: Sequence[Encoding], found: Sequence[Attribution]) -> list[Attribution]:
    """Join the attributions of all parts into one per encoding.

    A token's score is the mean over the windows that read it; costs are added. Choices are
    explained by the row of one of them, whose scores are those of the whole.
    """
    ends = np.cumsum([0, *(len(parts_of(encoding)) for encoding in encodings)])
    return [
        _folded(encoding, found[start:end])
        for encoding, (start, end) in zip(encodings, pairwise(ends.tolist()), strict=True)
    ]


def _folded(encoding: Encoding, parts: Sequence[Attribution]) -> Attribution:
    if not encoding.windows:
        return parts[0]
    if encoding.joint:
        (part,) = parts
        every_score = np.zeros(len(encoding.ids))
        every_score[encoding.windows[part.encoding.choice or 0]] = part.every_score
        return dataclasses.replace(part, encoding=encoding, every_score=every_score)
    sums, counts = np.zeros(len(encoding.ids)), np.zeros(len(encoding.ids))
    for places, part in zip(encoding.windows, parts, strict=True):
        sums[places] += part.every_score
        counts[places] += 1
    gaps = [part.gap for part in parts if part.gap is not None]
    return Attribution(
        encoding=encoding,
        target=parts[0].target,
        every_score=sums / counts,
        seconds=sum(part.seconds for part in parts),
        forwards=_total([part.forwards for part in parts]),
        backwards=_total([part.backwards for part in parts]),
        gap=max(gaps, key=abs) if gaps else None,
        elsewhere=_total([part.elsewhere for part in parts]),
    )


def _total(costs: Sequence[Number | None]) -> Number | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known[1:], known[0]) if len(known) == len(costs) else None

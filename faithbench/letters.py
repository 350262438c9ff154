"""Compact letter display: explainers that share a letter are not significantly different."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from faithbench.errors import FaithbenchError
from faithbench.stats import ALPHA

PValues = Sequence[Sequence[float | None]]


def letters(adjusted: PValues, alpha: float = ALPHA) -> list[str]:
    """Return the letters of each row of a symmetric matrix of adjusted p values.

    None, where there was no test, counts as not different. With the best explainer in the
    first row, `a` is the best one's letter.
    """
    groups = tie_groups(adjusted, alpha)
    return [
        "".join(_letter(place) for place, group in enumerate(groups) if row in group)
        for row in range(len(adjusted))
    ]


def tie_groups(adjusted: PValues, alpha: float = ALPHA) -> list[frozenset[int]]:
    """Return the largest groups of rows without a significant difference inside, first row first.

    Row by row: a new row joins the part of each group that it is tied with, and a group stays
    as it was if that is not all of it. Of the new groups, those inside others are dropped. So
    insert and absorb (Piepho 2004) ends too, which goes pair by pair.
    """
    size = len(adjusted)
    if any(len(row) != size for row in adjusted):
        raise FaithbenchError(
            f"tie letters need a p value for every pair of {size} explainers, found rows of "
            f"{sorted({len(row) for row in adjusted})}; give a square matrix"
        )
    groups: list[int] = []
    for row, own in enumerate(adjusted):
        tied = sum(1 << i for i, p in enumerate(own[:row]) if p is None or p >= alpha)
        kept = [group for group in groups if group & ~tied]
        groups = kept + _outermost({group & tied | 1 << row for group in groups} or {1 << row})
    found = [frozenset(row for row in range(size) if group >> row & 1) for group in groups]
    return sorted(found, key=sorted)


def _outermost(groups: set[int]) -> list[int]:
    """Drop groups inside others; a group is a number with a bit for each of its rows."""
    return [one for one in groups if not any(one != o and one & o == one for o in groups)]


def _letter(place: int) -> str:
    """Return a to z, A to Z, then a2, b2, ...: so many are rare, but must not collide."""
    turn, index = divmod(place, len(ascii_letters))
    return ascii_letters[index] + (str(turn + 1) if turn else "")

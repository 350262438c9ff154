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

    Insert and absorb (Piepho 2004): start with one group of all; split each group that holds a
    significant pair into one without the first and one without the second; drop groups inside
    others.
    """
    size = len(adjusted)
    if any(len(row) != size for row in adjusted):
        raise FaithbenchError(
            f"tie letters need a p value for every pair of {size} explainers, found rows of "
            f"{sorted({len(row) for row in adjusted})}; give a square matrix"
        )
    groups = [frozenset(range(size))] if size else []
    for i in range(size):
        for j in range(i + 1, size):
            p = adjusted[i][j]
            if p is not None and p < alpha:
                groups = _insert(groups, i, j)
    return sorted(groups, key=sorted)


def _insert(groups: Sequence[frozenset[int]], i: int, j: int) -> list[frozenset[int]]:
    pair = {i, j}
    kept = [group for group in groups if not pair <= group]
    halves = [group - {one} for group in groups if pair <= group for one in (i, j)]
    # A half inside another half has the other's missing row too, so only equal ones can meet.
    return kept + [
        half
        for half in dict.fromkeys(halves)
        if not any(half <= group for group in kept) and not any(half < other for other in halves)
    ]


def _letter(place: int) -> str:
    """Return a to z, A to Z, then a2, b2, ...: so many are rare, but must not collide."""
    turn, index = divmod(place, len(ascii_letters))
    return ascii_letters[index] + (str(turn + 1) if turn else "")

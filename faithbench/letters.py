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
    groups = [(1 << size) - 1] if size else []
    for i in range(size):
        for j in range(i + 1, size):
            p = adjusted[i][j]
            if p is not None and p < alpha:
                groups = _insert(groups, i, j)
    found = [frozenset(row for row in range(size) if group >> row & 1) for group in groups]
    return sorted(found, key=sorted)


def _insert(groups: Sequence[int], i: int, j: int) -> list[int]:
    """Split the groups that hold both rows; a group is a number with a bit for each row."""
    pair = 1 << i | 1 << j
    kept = [group for group in groups if group & pair != pair]
    whole = [group for group in groups if group & pair == pair]
    halves = [group & ~(1 << one) for group in whole for one in (i, j)]
    # No half lies inside another: no group lies inside another, and `kept` has one row at most.
    return kept + [half for half in halves if not any(half & group == half for group in kept)]


def _letter(place: int) -> str:
    """Return a to z, A to Z, then a2, b2, ...: so many are rare, but must not collide."""
    turn, index = divmod(place, len(ascii_letters))
    return ascii_letters[index] + (str(turn + 1) if turn else "")

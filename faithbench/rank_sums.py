"""Rank sums of many paired differences at once: what signed-rank tests are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from faithbench.types import Bools, Floats, Ints


@dataclass(frozen=True)
class RankSums:
    """One entry per row of differences, ranked by magnitude, equal ones by the mean rank.

    `up` and `down` are the rank sums of the positive and the negative ones; `zeros` counts the
    others, and `tied` is the sum of t^3 - t over groups of t equal magnitudes, zeros apart.
    """

    n: int
    up: Floats
    down: Floats
    zeros: Ints
    tied: Floats

    @property
    def effect(self) -> Floats:
        """Return the share of rank sums that is up less that down (Kerby 2014)."""
        return (self.up - self.down) / (self.up + self.down)

    @property
    def p(self) -> Floats:
        """Return the two-sided p by the normal approximation, zeros by Pratt's rule.

        Zeros and ties are corrected for as in Cureton (1967).
        """
        from scipy.special import ndtr

        n, zeros = float(self.n), self.zeros.astype(float)
        expected = (n * (n + 1) - zeros * (zeros + 1)) / 4
        cubes = n * (n + 1) * (2 * n + 1) - zeros * (zeros + 1) * (2 * zeros + 1)
        spread = np.sqrt((cubes - self.tied / 2) / 24)
        p: Floats = 2 * ndtr(-np.abs(self.up - expected) / spread)
        return np.minimum(p, 1.0)


def rank_sums(changes: Floats) -> RankSums:
    """Rank every row of differences by magnitude.

    A magnitude and its sign are packed into one integer (positive floats sort as their bits
    do), because sorting those is several times as fast as finding an order of floats.
    """
    keys = (np.abs(changes).view(np.uint64) << np.uint64(1)) | (changes > 0)
    keys.sort(axis=1)
    sizes, is_up = keys >> np.uint64(1), (keys & np.uint64(1)).astype(bool)
    rows, n = changes.shape
    plain = (sizes[:, 0] > 0) & (sizes[:, 1:] != sizes[:, :-1]).all(axis=1)
    # Without zeros and ties the ranks are 1 to n.
    up = is_up @ np.arange(1.0, n + 1)
    down = n * (n + 1) / 2 - up
    zeros, tied = np.zeros(rows, dtype=np.int64), np.zeros(rows)
    if not plain.all():
        odd = ~plain
        up[odd], down[odd], zeros[odd], tied[odd] = _tied_sums(sizes[odd], is_up[odd])
    return RankSums(n, up, down, zeros, tied)


def _tied_sums(sizes: NDArray[np.uint64], is_up: Bools) -> tuple[Floats, Floats, Ints, Floats]:
    """Return rank sums up and down, zeros and ties of rows that are sorted by magnitude."""
    rows, n = sizes.shape
    starts = np.ones((rows, n), dtype=bool)
    starts[:, 1:] = sizes[:, 1:] != sizes[:, :-1]
    # Groups of equal magnitudes, all rows in one line: a new row always starts a new group.
    first = np.flatnonzero(starts)
    counts = np.diff(first, append=rows * n)
    row = first // n
    middle = first - row * n + (counts + 1) / 2
    is_zero = sizes.ravel()[first] == 0
    ups = np.add.reduceat(is_up.ravel(), first, dtype=np.int64)
    below = np.where(is_zero, 0, counts - ups)
    cubes = np.where(is_zero, 0.0, counts * (counts * counts - 1.0))
    return (
        _totals(row, middle * ups, rows),
        _totals(row, middle * below, rows),
        _totals(row, counts * is_zero, rows).astype(np.int64),
        _totals(row, cubes, rows),
    )


def _totals(row: Ints, parts: Floats | Ints, rows: int) -> Floats:
    """Add up the parts of each row."""
    return np.bincount(row, weights=parts, minlength=rows).astype(float)

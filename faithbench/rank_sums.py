"""Rank sums of many paired differences at once: what signed-rank tests are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faithbench.types import Floats, Ints


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
    rows, n = changes.shape
    keys = (np.abs(changes).view(np.uint64) << np.uint64(1)) | (changes > 0)
    keys.sort(axis=1)
    sizes, is_up = keys >> np.uint64(1), (keys & np.uint64(1)).astype(bool)
    starts = np.ones((rows, n), dtype=bool)
    starts[:, 1:] = sizes[:, 1:] != sizes[:, :-1]
    # Groups of equal magnitudes, all rows in one line: a new row always starts a new group.
    first = np.flatnonzero(starts)
    counts = np.diff(first, append=rows * n)
    ranks = np.repeat(first % n + (counts + 1) / 2, counts).reshape(rows, n)
    is_zero = sizes == 0
    up = (ranks * is_up).sum(axis=1)
    down = (ranks * ~(is_up | is_zero)).sum(axis=1)
    cubes = np.where(is_zero.ravel()[first], 0.0, counts.astype(float) ** 3 - counts)
    tied = np.bincount(first // n, weights=cubes, minlength=rows)
    return RankSums(n, up, down, is_zero.sum(axis=1), tied)

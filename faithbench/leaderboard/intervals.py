"""Means and bootstrap intervals of many columns at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from faithbench.rounding import significant
from faithbench.stats import RESAMPLES, Summary, summarise
from faithbench.types import Floats

MOST = 1000
"""Up to so many values the draws are kept as a matrix of weights."""


def summaries(columns: Sequence[Floats]) -> list[Summary]:
    """Summarise columns as `stats.summarise` does: same seed, same draws, all in one product.

    What a draw makes of a column depends on the number of values alone, so that columns of as
    many values share their draws. A missing value is NaN.
    """
    present = [values[~np.isnan(values)] for values in columns]
    found: dict[int, Summary] = {}
    for n in sorted({len(values) for values in present}):
        places = [place for place, values in enumerate(present) if len(values) == n]
        if not 1 < n <= MOST:
            for place in places:
                mean, interval, _, _ = summarise(present[place].tolist())
                found[place] = (mean, interval, n, len(columns[place]) - n)
            continue
        means = np.stack([present[place] for place in places]) @ _weights(n)
        low, high = _ends(means)
        for place, ends in zip(places, zip(low, high, strict=True), strict=True):
            mean = significant(math.fsum(present[place].tolist()) / n, 12)
            interval = (significant(ends[0], 12), significant(ends[1], 12))
            found[place] = (mean, interval, n, len(columns[place]) - n)
    return [found[place] for place in range(len(columns))]


def _ends(means: Floats) -> tuple[Floats, Floats]:
    """Return the 2.5th and 97.5th percentile of every row, between neighbours in proportion."""
    below, part = divmod(0.025 * (RESAMPLES - 1), 1)
    far = int(below) + 1
    # Two places are all that is asked for, so rows need not be sorted but on either side of them.
    lower = np.partition(means, far, axis=1)[:, : far + 1]
    upper = np.partition(means, -far - 1, axis=1)[:, -far - 1 :]
    low = lower[:, :far].max(axis=1) * (1 - part) + lower[:, far] * part
    high = upper[:, 1:].min(axis=1) * (1 - part) + upper[:, 0] * part
    return low, high


@lru_cache(maxsize=64)
def _weights(n: int) -> Floats:
    """Return how much each of n values weighs in each draw: a column per draw."""
    draws = np.random.default_rng(0).integers(0, n, size=(RESAMPLES, n))
    flat = draws + np.arange(RESAMPLES)[:, None] * n
    counts = np.bincount(flat.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n)
    return np.ascontiguousarray(counts.T / n)

"""Means and bootstrap intervals of many columns at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import significant
from faithbench.core.types import Floats

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


RESAMPLES = 2000

Column = Sequence[float | None]
Summary = tuple[float | None, tuple[float, float] | None, int, int]


def summarise(values: Column, seed: int = 0) -> Summary:
    """Return mean, percentile-bootstrap 95% interval of it, n, and how many were missing.

    Both are kept to 12 significant digits, past which processors sum differently.
    """
    present = [float(value) for value in values if value is not None]
    for value in present:
        if not math.isfinite(value):
            raise FaithbenchError(f"cannot summarise {value}; a missing value should be None")
    n, skipped = len(present), len(values) - len(present)
    if n == 0:
        return None, None, 0, skipped
    mean = significant(math.fsum(present) / n, 12)
    if n == 1:
        return mean, None, 1, skipped
    low, high = np.percentile(_resampled_means(np.array(present), seed), [2.5, 97.5])
    return mean, (significant(low, 12), significant(high, 12)), n, skipped


def _resampled_means(data: Floats, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    # In blocks: 2000 x 40000 indices at once would take more memory than the model.
    block = max(1, 2_000_000 // len(data))
    sizes = [min(block, RESAMPLES - start) for start in range(0, RESAMPLES, block)]
    draws = (rng.integers(0, len(data), size=(size, len(data))) for size in sizes)
    return np.concatenate([data[draw].mean(axis=1) for draw in draws])

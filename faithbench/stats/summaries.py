"""Means of metric values, and bootstrap intervals of any statistic of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import significant
from faithbench.core.types import Floats, Ints

RESAMPLES = 2000
DIGITS = 12
"""Significant digits that are kept: past them, processors sum differently."""

Interval = tuple[float, float]
Column = Sequence[float | None]
"""One value per example, None where it is missing."""
Summary = tuple[float | None, Interval | None, int, int]
"""The mean, its 95% interval, the number of values, and the number of missing ones."""


def bootstrap(n: int, statistic: Callable[[Ints], Floats], seed: int = 0) -> Floats:
    """Return both ends of the percentile-bootstrap 95% interval of a statistic of n values.

    `statistic` is given draws, one row of n indices each, and returns its value for every draw
    along the last axis. Axes before it are kept: several columns can share their draws.
    """
    return np.percentile(_resampled(n, statistic, seed), [2.5, 97.5], axis=-1)


def _resampled(n: int, statistic: Callable[[Ints], Floats], seed: int) -> Floats:
    """Return a statistic of every draw, along the last axis."""
    rng = np.random.default_rng(seed)
    # In blocks: 2000 x 40000 indices at once would take more memory than the model. The draws do
    # not depend on the size of the blocks.
    block = max(1, 2_000_000 // n)
    sizes = [min(block, RESAMPLES - start) for start in range(0, RESAMPLES, block)]
    values = [statistic(rng.integers(0, n, size=(size, n))) for size in sizes]
    return np.concatenate(values, axis=-1)


def summarise(values: Column, seed: int = 0) -> Summary:
    """Return the mean of a column, and the interval of the mean."""
    present = [float(value) for value in values if value is not None]
    for value in present:
        if not math.isfinite(value):
            raise FaithbenchError(f"cannot summarise {value}; a missing value should be None")
    data, ends = np.array(present), None
    if len(data) > 1:
        ends = bootstrap(len(data), lambda draws: data[draws].mean(axis=1), seed)
    return _summary(present, ends, missing=len(values) - len(present))


def summaries(columns: Sequence[Floats]) -> list[Summary]:
    """Summarise many columns, in which a missing value is NaN, in a fraction of the time.

    Columns with the same number of values share their draws, so that all means of all draws are
    one matrix product. It sums in another order than `summarise`: the last of the digits kept may
    differ.
    """
    present = [values[~np.isnan(values)] for values in columns]
    made: dict[int, Summary] = {}
    for n in sorted({len(values) for values in present}):
        indices = [index for index, values in enumerate(present) if len(values) == n]
        intervals = _intervals_of_means(np.stack([present[index] for index in indices]))
        for index, ends in zip(indices, intervals, strict=True):
            missing = len(columns[index]) - n
            made[index] = _summary(present[index].tolist(), ends, missing)
    return [made[index] for index in range(len(columns))]


def _intervals_of_means(columns: Floats) -> list[Floats] | list[None]:
    """Return both ends of the interval of each row's mean; None where a row has one value."""
    rows, n = columns.shape
    if n < 2:
        return [None] * rows

    def means(draws: Ints) -> Floats:
        # How often each value was drawn, counted for all draws at once by numbering them apart.
        numbered = draws + np.arange(len(draws))[:, None] * n
        counts = np.bincount(numbered.ravel(), minlength=draws.size).reshape(draws.shape)
        drawn: Floats = columns @ np.ascontiguousarray(counts.T / n)
        return drawn

    return list(np.transpose(_outer_percentiles(_resampled(n, means, seed=0))))


def _outer_percentiles(values: Floats) -> tuple[Floats, Floats]:
    """Return the 2.5th and the 97.5th percentile of every row.

    As `np.percentile`, in half its time, because either percentile is looked for at its own end.
    It interpolates by another formula, whose last bit decides where a mean of values with nine
    decimals lies half-way between two of the digits kept: published boards were made with it.
    """
    index, share = divmod(0.025 * (RESAMPLES - 1), 1)
    far = int(index) + 1
    lower = np.partition(values, far, axis=1)[:, : far + 1]
    upper = np.partition(values, -far - 1, axis=1)[:, -far - 1 :]
    low = lower[:, :far].max(axis=1) * (1 - share) + lower[:, far] * share
    high = upper[:, 1:].min(axis=1) * (1 - share) + upper[:, 0] * share
    return low, high


def _summary(present: list[float], ends: Floats | None, missing: int) -> Summary:
    n = len(present)
    mean = significant(math.fsum(present) / n, DIGITS) if n else None
    if ends is None:
        return mean, None, n, missing
    low, high = (significant(end, DIGITS) for end in ends.tolist())
    return mean, (low, high), n, missing

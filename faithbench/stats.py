"""What many values come to: means, intervals, and paired tests between explainers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.errors import FaithbenchError
from faithbench.rounding import significant
from faithbench.types import Floats

RESAMPLES = 2000

Summary = tuple[float | None, tuple[float, float] | None, int, int]


def summarise(values: Sequence[float | None], seed: int = 0) -> Summary:
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


@dataclass(frozen=True)
class PairedTest:
    """A paired test of two explainers: p value and effect, or the reason why there is none."""

    p: float | None
    effect: float
    n: int
    reason: str = ""


def signed_rank(first: Sequence[float | None], second: Sequence[float | None]) -> PairedTest:
    """Test paired values by Wilcoxon's signed-rank test, zero differences by Pratt's rule.

    `effect` is the rank-biserial correlation of the differences: +1 if `first` is always
    the higher. Pairs with a missing value are left out.
    """
    from scipy.stats import rankdata, wilcoxon

    pairs = zip(first, second, strict=True)
    # Rounded, so that the last bit of a subtraction does not break a tie of equal differences.
    differences = np.array([round(a - b, 12) for a, b in pairs if a is not None and b is not None])
    n = len(differences)
    if n < 6:
        return PairedTest(None, 0.0, n, f"only {n} pairs")
    if not differences.any():
        return PairedTest(None, 0.0, n, "all differences are zero")
    ranks = rankdata(np.abs(differences))
    up, down = ranks[differences > 0].sum(), ranks[differences < 0].sum()
    p = float(wilcoxon(differences, zero_method="pratt").pvalue)
    return PairedTest(p, float((up - down) / (up + down)), n)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for many tests (Holm-Bonferroni): step-down, monotone, at most 1."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, highest = [0.0] * len(p_values), 0.0
    for place, index in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = highest
    return adjusted

"""What many values come to: means, intervals, and paired tests between explainers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Literal, NamedTuple

import numpy as np

from faithbench.errors import FaithbenchError
from faithbench.rank_sums import rank_sums
from faithbench.rounding import significant
from faithbench.types import Floats

RESAMPLES = 2000
ALPHA = 0.05
FEWEST = 6  # pairs below which no test can reach p < .05

Column = Sequence[float | None]
TestName = Literal["signed-rank", "McNemar", "paired t", "rank-sum"]
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


class PairedTest(NamedTuple):
    """A test of two explainers: p value and effect, or the reason why there is none.

    A tuple, which is made faster than a frozen dataclass: a leaderboard has 100000 and more.
    `effect` is a rank-biserial correlation: +1 if the first is always the higher.
    """

    p: float | None
    effect: float
    n: int
    reason: str = ""
    name: TestName = "signed-rank"


def signed_rank(first: Column, second: Column) -> PairedTest:
    """Test paired values by Wilcoxon's signed-rank test, zero differences by Pratt's rule.

    Pairs with a missing value are left out.
    """
    changes = differences(first, second)
    return no_test(changes) or signed_ranks(changes[None])[0]


def signed_ranks(changes: Floats) -> list[PairedTest]:
    """Test every row of paired differences, all together.

    p is scipy's: exact up to 13 pairs, and up to 50 without zeros and ties; else the normal
    approximation. The effect counts zeros in the ranking and then drops them, as the test does.
    """
    n, sums = changes.shape[1], rank_sums(changes)
    if n <= 13:
        ps = np.array([_exact_signed_rank(row) for row in changes])
    else:
        exact = (sums.zeros == 0) & (sums.tied == 0) & (n <= 50)
        ps = sums.p
        if exact.any():
            ps[exact] = _untied_exact_p(changes[exact])
    return list(map(PairedTest, ps.tolist(), sums.effect.tolist(), repeat(n)))


def _untied_exact_p(changes: Floats) -> Floats:
    from scipy.stats import wilcoxon

    return wilcoxon(changes, method="exact", axis=1, keepdims=True).pvalue.ravel()


def _exact_signed_rank(changes: Floats) -> float:
    """Count the sign patterns with a rank sum as extreme: scipy takes seconds for ties."""
    from scipy.stats import rankdata

    doubled = np.rint(2 * rankdata(np.abs(changes))).astype(int)  # whole, also where tied
    counts = np.zeros(doubled.sum() + 1)
    counts[0] = 1
    for rank in doubled[changes != 0]:
        counts[rank:] = counts[rank:] + counts[:-rank]
    up = doubled[changes > 0].sum()
    rarer = min(counts[: up + 1].sum(), counts[up:].sum())
    return float(min(1.0, 2 * rarer / counts.sum()))


def differences(first: Column, second: Column) -> Floats:
    """Subtract paired values; a pair with a missing value is left out.

    Rounded, so that the last bit of a subtraction does not break a tie of equal differences.
    """
    pairs = zip(first, second, strict=True)
    return np.round([a - b for a, b in pairs if a is not None and b is not None], 12)


def no_test(changes: Floats, name: TestName = "signed-rank") -> PairedTest | None:
    """Return the test that says why there is none, if there can be none."""
    n = len(changes)
    if n >= FEWEST and changes.any():
        return None
    return PairedTest(None, 0.0, n, why_none(n), name)


def why_none(n: int) -> str:
    """Say why n pairs cannot be tested: too few, or else all the same."""
    return f"only {n} pairs" if n < FEWEST else "all differences are zero"


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for many tests (Holm-Bonferroni): step-down, monotone, at most 1."""
    given = np.array(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    stepped = np.minimum(1.0, np.arange(len(given), 0, -1) * given[order])
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(stepped)
    found: list[float] = adjusted.tolist()
    return found

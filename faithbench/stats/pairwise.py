"""Tests of pairs of explainers: the one that fits a metric's values, and those of the papers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Floats
from faithbench.stats.signed_rank import (
    FEWEST,
    PairedTest,
    TestName,
    differences,
    no_test,
    rank_sums,
    signed_ranks,
    why_none,
)
from faithbench.stats.summaries import Column


def paired_tests(
    columns: Sequence[Column | Floats], pairs: Sequence[tuple[int, int]]
) -> list[PairedTest]:
    """Test pairs of columns: McNemar where all values of both are 0 or 1, else signed ranks.

    A column has one value per example, in the same order, None or NaN where missing.
    Whole tables go at once, because thousands of single calls would take most of a leaderboard's
    time.
    """
    if not pairs:
        return []
    arrays = np.array(columns, dtype=float)  # None becomes NaN
    absent = np.isnan(arrays)
    zero_one = ((arrays == 0) | (arrays == 1) | absent).all(axis=1)
    first, second = np.array(pairs).T
    # Rounded, so that the last bit of a subtraction does not break a tie of equal differences.
    changes = np.round(arrays[first] - arrays[second], 12)
    missing = absent[first] | absent[second]
    counts = changes.shape[1] - missing.sum(axis=1)
    differ = (np.where(missing, 0, changes) if absent.any() else changes).any(axis=1)
    binary = zero_one[first] & zero_one[second]
    tested = (counts >= FEWEST) & differ
    tests: list[PairedTest | None] = [None] * len(pairs)
    for pair in np.flatnonzero(~tested).tolist():
        n, name = int(counts[pair]), _test_name(binary[pair])
        tests[pair] = PairedTest(None, 0.0, n, why_none(n), name)
    # Pairs with as many values, and of the same test, are the rows of one matrix.
    alike = set(zip(binary[tested].tolist(), counts[tested].tolist(), strict=True))
    for is_binary, n in sorted(alike):
        chosen = np.flatnonzero(tested & (binary == is_binary) & (counts == n))
        rows = changes if len(chosen) == len(pairs) else changes[chosen]
        if n < rows.shape[1]:
            rows = rows[~missing[chosen]].reshape(len(chosen), n)
        results = _mcnemar_tests(rows) if is_binary else signed_ranks(rows)
        for pair, test in zip(chosen.tolist(), results, strict=True):
            tests[pair] = test
    return [test for test in tests if test is not None]


def _test_name(is_binary: bool) -> TestName:
    return "McNemar" if is_binary else "signed-rank"


def is_zero_one(*columns: Column) -> bool:
    """Return whether all present values are 0 or 1, as those of a 0/1 metric are."""
    return all(value in (0, 1, None) for column in columns for value in column)


def mcnemar(first: Column, second: Column) -> PairedTest:
    """Test paired 0/1 values by McNemar's exact test: a fair coin for each pair that differs."""
    if not is_zero_one(first, second):
        other = next(v for v in (*first, *second) if v not in (0, 1, None))
        raise FaithbenchError(
            f"McNemar's test was asked for values of 0 and 1, found {other}; "
            "test such values by signed ranks"
        )
    changes = differences(first, second)
    return no_test(changes, "McNemar") or _mcnemar_tests(changes[None])[0]


def mcnemar_greater(first: Column, second: Column) -> float | None:
    """Return the exact p of McNemar's one-sided test that the first values are the greater.

    None where no pair differs.
    """
    from scipy.stats import binomtest

    changes = differences(first, second)
    up, down = int((changes > 0).sum()), int((changes < 0).sum())
    return float(binomtest(up, up + down, 0.5, "greater").pvalue) if up + down else None


def _mcnemar_tests(changes: Floats) -> list[PairedTest]:
    """Test every row of differences of 0/1 values."""
    from scipy.special import bdtr

    up, down = (changes > 0).sum(axis=1), (changes < 0).sum(axis=1)
    # The coin is fair, so both tails are alike; scipy's binomtest is far slower.
    ps = np.minimum(1.0, 2 * bdtr(np.minimum(up, down), up + down, 0.5))
    effects = (up - down) / (up + down)
    return [
        PairedTest(p, effect, changes.shape[1], name="McNemar")
        for p, effect in zip(ps.tolist(), effects.tolist(), strict=True)
    ]


def paired_t(first: Column, second: Column) -> PairedTest:
    """Test paired values by Student's t, as FRESH (Jain et al. 2020) does.

    It assumes normal differences, which these metrics seldom have. The effect is the same
    rank-biserial correlation as that of the other tests.
    """
    from scipy.stats import ttest_1samp

    changes = differences(first, second)
    untestable = no_test(changes, "paired t")
    if untestable is not None:
        return untestable
    effect, n = float(rank_sums(changes[None]).effect[0]), len(changes)
    if np.ptp(changes) == 0:
        return PairedTest(None, effect, n, "all differences are the same", "paired t")
    return PairedTest(float(ttest_1samp(changes, 0.0).pvalue), effect, n, name="paired t")


def rank_sum(first: Column, second: Column) -> PairedTest:
    """Test two samples by Wilcoxon's rank-sum test, as SaLoss (Chrysostomou and Aletras) does.

    It ignores that values are paired, so it finds fewer differences; as in scipy and in the
    published code, ties are not corrected for. `n` is the size of the smaller sample.
    """
    from scipy.stats import rankdata, ranksums

    left, right = ([value for value in column if value is not None] for column in (first, second))
    n = min(len(left), len(right))
    if n < FEWEST:
        return PairedTest(None, 0.0, n, f"only {n} values", "rank-sum")
    if len({*left, *right}) == 1:
        return PairedTest(None, 0.0, n, "all values are equal", "rank-sum")
    # Mann and Whitney's U: the number of pairs, one of each sample, in which the first is higher.
    lowest = len(left) * (len(left) + 1) / 2
    higher = float(rankdata([*left, *right])[: len(left)].sum()) - lowest
    effect = 2 * higher / (len(left) * len(right)) - 1
    return PairedTest(float(ranksums(left, right).pvalue), effect, n, name="rank-sum")


def mean_tests(
    columns: Sequence[Column | Floats], pairs: Sequence[tuple[int, int]]
) -> list[PairedTest]:
    """Test pairs of columns by Student's paired t: of values of which only the mean has a meaning.

    Such are pseudo-values, whose order says nothing. The effect is the mean of the differences
    divided by their standard deviation.
    """
    from scipy.stats import ttest_1samp

    arrays = np.array(columns, dtype=float)  # None becomes NaN
    tests = []
    for first, second in pairs:
        changes = np.round(arrays[first] - arrays[second], 12)
        changes = changes[~np.isnan(changes)]
        untestable, n = no_test(changes, "paired t"), len(changes)
        if untestable is None and np.ptp(changes) == 0:
            untestable = PairedTest(None, 0.0, n, "all differences are the same", "paired t")
        if untestable is None:
            effect = float(changes.mean() / changes.std(ddof=1))
            p = float(ttest_1samp(changes, 0.0).pvalue)
            untestable = PairedTest(p, effect, n, name="paired t")
        tests.append(untestable)
    return tests


def two_sample_t(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return p of Student's t-test of two independent samples, as SaLoss tests F1 over seeds.

    None for samples of one value, and where no value differs from another of its sample.
    """
    from scipy.stats import ttest_ind

    if min(len(first), len(second)) < 2 or np.ptp(first) == np.ptp(second) == 0:
        return None
    return float(ttest_ind(first, second).pvalue)


ALPHA = 0.05
"""The level of significance, after correction for the number of tests."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p values for many tests (Holm-Bonferroni): step-down, monotone, at most 1."""
    # The smallest p counts for all tests, the next for one less, and so on; an adjusted value is
    # never below that of a smaller p.
    given = np.array(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    stepped = np.minimum(1.0, np.arange(len(given), 0, -1) * given[order])
    adjusted = np.empty_like(given)
    adjusted[order] = np.maximum.accumulate(stepped)
    in_given_order: list[float] = adjusted.tolist()
    return in_given_order

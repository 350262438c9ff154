"""Means, intervals and paired tests, by hand and against the plain bootstrap and scipy."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from faithbench.stats.pairwise import holm
from faithbench.stats.signed_rank import PairedTest, rank_sums, signed_rank


def test_signed_rank_by_hand() -> None:
    # Differences 1, 2, 3, 4, 5, -6: the negative rank sum is 6 of 21, so the effect is 9 / 21.
    test = signed_rank([1, 2, 3, 4, 5, 0], [0, 0, 0, 0, 0, 6])
    assert test.effect == pytest.approx(9 / 21)
    # 14 of the 64 sign patterns have a negative rank sum of 6 or less: two-sided 28 / 64.
    assert test.p == pytest.approx(28 / 64)
    assert (test.n, test.reason) == (6, "")
    # All six up: 2 of 64 patterns are as extreme.
    assert signed_rank([2.0] * 6, [1.0, 0.0, -1.0, -2.0, -3.0, -4.0]).p == pytest.approx(2 / 64)


def test_zero_differences_by_pratts_rule() -> None:
    # Ranks with the two zeros: 1.5, 1.5, then 3 to 8; the sixth difference is negative.
    first, second = [5, 5, 1, 2, 3, 0, 5, 6], [5, 5, 0, 0, 0, 4, 0, 0]
    test = signed_rank(first, second)
    up, down = 3 + 4 + 5 + 7 + 8, 6
    assert test.effect == pytest.approx((up - down) / (up + down)) and test.n == 8
    differences = np.subtract(first, second)
    assert test.p == pytest.approx(wilcoxon(differences, zero_method="pratt").pvalue)
    assert test.p != pytest.approx(wilcoxon(differences, zero_method="wilcox").pvalue)


def test_signed_rank_is_scipys_on_many_values() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 200)).round(9)
    test = signed_rank((first + 0.2).round(9).tolist(), second.tolist())
    expected = wilcoxon((first + 0.2).round(9) - second, zero_method="pratt")
    assert test.p == pytest.approx(expected.pvalue, rel=1e-12)
    # Without zeros the statistic is the smaller rank sum, of 200 * 201 / 2 in all.
    assert abs(test.effect) == pytest.approx(1 - 2 * expected.statistic / 20100)


def test_effect_has_the_sign_of_the_first() -> None:
    low, high = [0.1 * i for i in range(8)], [0.1 * i + 1 + 0.01 * i for i in range(8)]
    assert signed_rank(high, low).effect == 1.0
    assert signed_rank(low, high).effect == -1.0
    assert signed_rank(high, low).p == signed_rank(low, high).p == pytest.approx(2 / 256)
    balanced = signed_rank([1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    assert balanced.effect == 0.0 and balanced.p == pytest.approx(1.0)


def test_equal_differences_tie_whatever_the_last_bit() -> None:
    # 0.3 - 0.1 and 0.2 - 0.0 differ in the last bit, and as ranks they must not.
    test = signed_rank([0.3, 0.0, 0.4, 0.5, 0.6, 0.9], [0.1, 0.2, 0.1, 0.1, 0.1, 0.3])
    # Ranks 1.5 (up), 1.5 (down), 3, 4, 5, 6.
    assert test.effect == pytest.approx((19.5 - 1.5) / 21)


def test_when_there_is_no_test() -> None:
    assert signed_rank([1, 2, 3, 4, 5], [0] * 5) == PairedTest(None, 0.0, 5, "only 5 pairs")
    assert signed_rank([], []) == PairedTest(None, 0.0, 0, "only 0 pairs")
    assert signed_rank([0.5] * 9, [0.5] * 9) == PairedTest(None, 0.0, 9, "all differences are zero")
    # A missing value takes its pair away: five are left of seven.
    first = [1.0, None, 3.0, 4.0, 5.0, 6.0, 7.0]
    second = [0.0, 0.0, 0.0, None, 0.0, 0.0, 0.0]
    assert signed_rank(first, second).reason == "only 5 pairs"
    with_gaps = signed_rank([*first, 8.0], [*second, 0.0])
    assert with_gaps == signed_rank([1, 3, 5, 6, 7, 8], [0] * 6) and with_gaps.n == 6


def test_holm_by_hand() -> None:
    # Sorted .01, .03, .04 times 3, 2, 1 is .03, .06, .04; no later one may be lower.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []
    assert holm([0.02, 0.02]) == [0.04, 0.04]


def test_holm_is_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(2)
    for size in (1, 2, 45, 378):
        values = (rng.random(size) ** 4).round(3)  # many small ones, and some equal
        expected = multipletests(values, method="holm")[1]
        assert holm(values.tolist()) == pytest.approx(expected.tolist(), rel=1e-12)


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@settings(deadline=None)
@given(P_VALUES, st.randoms(use_true_random=False))
def test_holm_keeps_order_and_does_not_see_places(values: list[float], random: Random) -> None:
    adjusted = holm(values)
    assert all(p <= a <= 1 for p, a in zip(values, adjusted, strict=True))
    in_order = sorted(zip(values, adjusted, strict=True))
    assert [a for _, a in in_order] == sorted(adjusted)
    places = list(range(len(values)))
    random.shuffle(places)
    assert holm([values[i] for i in places]) == [adjusted[i] for i in places]


@settings(deadline=None)
@given(P_VALUES)
def test_holm_is_its_definition(values: list[float]) -> None:
    # The largest Bonferroni bound of any step up to one's own.
    ordered = sorted(values)
    for value, found in zip(values, holm(values), strict=True):
        steps = [(len(values) - i) * p for i, p in enumerate(ordered) if p <= value]
        assert found == min(1.0, max(steps))
    assert min(holm(values)) == min(1.0, len(values) * ordered[0])


THOUSANDTHS = st.integers(-1000, 1000).map(lambda i: i / 1000)


@settings(max_examples=10, deadline=None)  # scipy goes through all signs of small samples
@given(st.lists(st.tuples(THOUSANDTHS, THOUSANDTHS), min_size=6, max_size=30))
def test_signed_rank_is_scipys_and_antisymmetric(pairs: list[tuple[float, float]]) -> None:
    first, second = zip(*pairs, strict=True)
    test, turned = signed_rank(first, second), signed_rank(second, first)
    assert turned.effect == pytest.approx(-test.effect) and -1 <= test.effect <= 1
    differences = np.round(np.subtract(first, second), 3)
    if not differences.any():
        assert test.p is None
        return
    expected = wilcoxon(differences, zero_method="pratt").pvalue
    assert test.p == pytest.approx(expected) and turned.p == pytest.approx(expected)


def test_by_hand() -> None:
    rows = np.array([[1.0, -2.0, 3.0, 4.0], [0.0, -1.0, 1.0, 2.0], [0.0, -0.0, 0.5, 0.5]])
    found = rank_sums(rows)
    # Ranks 1 2 3 4; then 1, 2.5, 2.5, 4; then 1.5, 1.5, 3.5, 3.5.
    assert found.up.tolist() == [8.0, 6.5, 7.0] and found.down.tolist() == [2.0, 2.5, 0.0]
    assert found.zeros.tolist() == [0, 1, 2] and found.tied.tolist() == [0.0, 6.0, 6.0]
    assert found.effect.tolist() == pytest.approx([0.6, 4 / 9, 1.0])


@pytest.mark.parametrize("decimals", [0, 1, 9])
def test_p_is_scipys(decimals: int) -> None:
    rng = np.random.default_rng(decimals)
    rows = rng.normal(0.1, 1, size=(50, 80)).round(decimals)
    rows[:10] = np.abs(rows[:10]) * np.sign(rng.normal(size=(10, 80)))
    expected = wilcoxon(rows, zero_method="pratt", method="asymptotic", axis=1).pvalue
    assert rank_sums(rows).p == pytest.approx(expected, rel=1e-12)


def test_tiny_and_huge_magnitudes_keep_their_order() -> None:
    found = rank_sums(np.array([[1e-300, -1e-12, 1e12, -1e300]]))
    assert (found.up.tolist(), found.down.tolist()) == ([4.0], [6.0])

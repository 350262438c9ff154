"""Kendall's tau-b by counting pairs, against hand calculation and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faithbench.core.types import Floats
from faithbench.metrics.rank_correlation import kendall


def scipys(first: Floats, second: Floats) -> float | None:
    from scipy.stats import kendalltau

    tau = float(kendalltau(first, second).statistic)
    return None if math.isnan(tau) else tau


def test_tau_by_hand() -> None:
    # Five of six pairs agree, one does not.
    assert kendall(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 4, 3])) == pytest.approx(4 / 6)
    # One pair is tied on the left: of the other five, four agree; sqrt(5 * 6) pairs count.
    tied = kendall(np.array([1.0, 1, 3, 4]), np.array([1.0, 2, 4, 3]))
    assert tied == pytest.approx((4 - 1) / math.sqrt(5 * 6))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], []),
        ([1.0], [2.0]),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0, 3.0], [0.0, -0.0, 0.0]),
        ([1.0, math.nan, 3.0], [1.0, 2.0, 3.0]),
    ],
)
def test_without_an_order_there_is_no_tau(first: list[float], second: list[float]) -> None:
    assert kendall(np.array(first), np.array(second)) is None


@pytest.mark.parametrize("n", [2, 3, 7, 20, 64, 65, 199, 500])
@pytest.mark.parametrize("levels", [2, 5, 10**6])
def test_tau_is_scipys_to_the_bit(n: int, levels: int) -> None:
    draw = np.random.default_rng(n * levels)
    for _ in range(20):
        first, second = draw.integers(levels, size=(2, n)) / 7
        mixed = first + second * draw.choice([0.0, 1e-9, 1.0])
        for left, right in ((first, second), (first, mixed), (first, -first)):
            assert kendall(left, right) == scipys(left, right)

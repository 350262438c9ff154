"""Rank sums by hand, and p against scipy for every kind of tie."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wilcoxon

from faithbench.rank_sums import rank_sums


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

"""Means and their intervals, by hand and against the plain bootstrap."""

from __future__ import annotations

import numpy as np
import pytest

from faithbench.errors import FaithbenchError
from faithbench.stats import summarise


def test_summaries_by_hand() -> None:
    assert summarise([]) == (None, None, 0, 0)
    assert summarise([None, None]) == (None, None, 0, 2)
    assert summarise([0.5, None]) == (0.5, None, 1, 1)
    # Means of two draws are 0, 1/2, 1 with chances 1/4, 1/2, 1/4: both tails exceed 2.5%.
    assert summarise([0.0, None, 1.0]) == (0.5, (0.0, 1.0), 2, 1)
    assert summarise([0.1] * 7) == (0.1, (0.1, 0.1), 7, 0)
    assert summarise([0.1, 0.2, 0.7], seed=3) == summarise([0.1, 0.2, 0.7], seed=3)
    for bad in (float("nan"), float("inf")):
        with pytest.raises(FaithbenchError, match=f"cannot summarise {bad}; a missing value"):
            summarise([1.0, bad])


def test_interval_is_the_plain_bootstrap() -> None:
    values = np.random.default_rng(5).normal(3.0, 1.0, size=3000)
    mean, ci95, n, skipped = summarise(values.tolist())
    draws = np.random.default_rng(0).integers(0, 3000, size=(2000, 3000))
    expected = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    assert ci95 == pytest.approx(expected, rel=1e-11)
    assert mean is not None and (n, skipped) == (3000, 0)
    assert mean == pytest.approx(values.mean(), rel=1e-11)
    # Normal theory: mean -+ 1.96 / sqrt(3000) = 0.0358
    assert ci95 == pytest.approx((mean - 0.0358, mean + 0.0358), abs=0.004)

"""Means and bootstrap intervals, of one column and of many."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap as scipy_bootstrap

from faithbench.core.errors import FaithbenchError
from faithbench.stats.summaries import bootstrap, summaries, summarise


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


def test_a_bootstrap_of_any_statistic_draws_from_seed_zero() -> None:
    values = np.random.default_rng(2).exponential(size=(3, 25))
    low, high = bootstrap(25, lambda draws: np.median(values[:, draws], axis=-1))
    draws = np.random.default_rng(0).integers(0, 25, size=(2000, 25))
    expected = np.percentile(np.median(values[:, draws], axis=-1), [2.5, 97.5], axis=-1)
    assert np.array_equal([low, high], expected)
    other, _ = bootstrap(25, lambda draws: np.median(values[:, draws], axis=-1), seed=1)
    assert not np.array_equal(other, low)


def test_blocks_do_not_change_the_draws() -> None:
    values = np.random.default_rng(3).normal(size=1500)  # 2000 draws take two blocks
    low, high = bootstrap(1500, lambda draws: values[draws].mean(axis=1))
    draws = np.random.default_rng(0).integers(0, 1500, size=(2000, 1500))
    assert [low, high] == np.percentile(values[draws].mean(axis=1), [2.5, 97.5]).tolist()


def test_the_interval_is_close_to_that_of_scipy() -> None:
    values = np.random.default_rng(4).gamma(2.0, size=60)
    _, ends, _, _ = summarise(values.tolist())
    reference = scipy_bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    assert ends == pytest.approx((reference.low, reference.high), abs=0.02)


def test_many_columns_are_summarised_as_one_by_one() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.normal(size=n).tolist() for n in (40, 40, 7, 1, 0, 1200)]
    columns[1][3] = None
    arrays = [np.array(column, dtype=float) for column in columns]
    for summary, column in zip(summaries(arrays), columns, strict=True):
        mean, ends, n, missing = summarise(column)
        assert summary[0] == mean and summary[2:] == (n, missing)
        assert summary[1] == (ends and pytest.approx(ends, rel=1e-10))

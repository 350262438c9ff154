"""A small version of benchmarks/family_wise_error.py: equal explainers seldom look different."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.support.benchmarks import load_benchmark


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return load_benchmark("family_wise_error")


def test_equal_explainers_are_rarely_told_apart(study: ModuleType) -> None:
    """Forty draws at .05 or less: nine errors or more have a chance below 1 in 10,000."""
    for null in study.NULLS.values():
        assert study.errors(null, draws=40, explainers=5, n=60) <= 8 / 40


def test_true_differences_are_found_and_not_counted(study: ModuleType) -> None:
    def clear(rng: np.random.Generator, explainers: int, n: int) -> np.ndarray:
        """One explainer far above the others, which are equal."""
        values = rng.normal(size=(explainers, n))
        values[1] += 3
        return values

    assert study.errors(clear, draws=10, explainers=4, n=60) == 1.0
    assert study.errors(study.normal, draws=40, explainers=4, n=60, better=1) <= 8 / 40


def test_no_explainer_is_better_in_a_null(study: ModuleType) -> None:
    """Means over many examples agree within four standard errors, and values tie where said."""
    for name, null in study.NULLS.items():
        values = null(np.random.default_rng(0), 4, 20_000)
        changes = values[:3] - values[3]
        if name != "heavy tails":  # which has no variance
            error = changes.std(axis=1) / np.sqrt(20_000)
            assert (np.abs(changes.mean(axis=1)) < 4 * error).all()
        if name == "nine of ten equal":
            assert 0.88 < (changes == 0).mean() < 0.93
        if name == "20 levels, half at 1":
            assert 0.45 < (values == 1).mean() < 0.6
        if name == "0/1, exact McNemar":
            assert set(np.unique(values)) == {0.0, 1.0}

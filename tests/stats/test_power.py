"""What a number of examples can tell apart, against the textbook and against a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faithbench.stats.power import detectable, examples_needed
from faithbench.stats.signed_rank import signed_ranks


def test_the_smallest_difference_by_hand() -> None:
    # One test at .05: 1.959964 + 0.841621 standard errors, and pi / 3 pairs for a t test's one.
    expected = (1.959964 + 0.841621) * 0.5 * math.sqrt(math.pi / 3 / 100)
    assert detectable(0.5, 100, 1) == pytest.approx(expected, rel=1e-6)
    # Holm over 10 tests: the first step has alpha .005, whose two-sided quantile is 2.807034.
    assert detectable(0.5, 100, 10) == pytest.approx(
        (2.807034 + 0.841621) * 0.5 * math.sqrt(math.pi / 300), rel=1e-6
    )


def test_more_examples_see_smaller_differences() -> None:
    few, many = detectable(0.3, 50, 78), detectable(0.3, 200, 78)
    assert few is not None and many is not None and few == pytest.approx(2 * many)
    assert examples_needed(many, 0.3, 78) in (200, 201)
    assert examples_needed(-many, 0.3, 78) in (200, 201), "the direction does not matter"


def test_nothing_to_tell_apart() -> None:
    assert detectable(0.0, 100, 3) is None and detectable(0.5, 1, 3) is None
    assert detectable(0.5, 100, 0) is None
    assert examples_needed(0.0, 0.5, 3) is None and examples_needed(0.1, 0.5, 0) is None


def test_four_of_five_such_differences_are_found() -> None:
    rng = np.random.default_rng(0)
    least = detectable(1.0, 200, 10)
    assert least is not None
    tests = signed_ranks(rng.normal(least, 1.0, size=(4000, 200)))
    found = np.mean([test.p is not None and test.p < 0.05 / 10 for test in tests])
    assert found == pytest.approx(0.8, abs=0.03)

"""The range of normal values: scipy's numbers, printed tables, and two values by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm, studentized_range

from faithbench.studentized_range import critical_width, tail


def test_two_values_differ_by_a_normal_value() -> None:
    """The range of two is |a - b|, normal with variance 2."""
    widths = np.array([0.0, 0.5, 2.0, 5.0])
    expected = 2 * norm.sf(widths / math.sqrt(2))
    np.testing.assert_allclose(tail(widths, 2), expected, atol=1e-13)
    assert critical_width(0.05, 2) == pytest.approx(1.959963984540054 * math.sqrt(2), abs=1e-12)


@pytest.mark.parametrize("values", [3, 10, 28, 100])
def test_tails_are_those_of_scipy(values: int) -> None:
    widths = np.array([0.01, 1.0, 2.5, 4.0, 6.0, 9.0])
    expected = studentized_range.sf(widths, values, math.inf)
    np.testing.assert_allclose(tail(widths, values), expected, atol=1e-10)


@pytest.mark.parametrize(("values", "printed"), [(3, 3.314), (4, 3.633), (10, 4.474), (20, 5.012)])
def test_critical_widths_are_those_of_printed_tables(values: int, printed: float) -> None:
    found = critical_width(0.05, values)
    assert found == pytest.approx(printed, abs=6e-4)
    assert tail(np.array([found]), values)[0] == pytest.approx(0.05, abs=1e-13)
    assert found == pytest.approx(studentized_range.ppf(0.95, values, math.inf), abs=1e-8)


def test_the_tail_falls_from_one_to_nothing() -> None:
    found = tail(np.array([0.0, 0.1, 3.0, 8.0, 40.0]), 25)
    assert found[0] == 1.0 and (np.diff(found) <= 0).all() and found[-1] == pytest.approx(0)

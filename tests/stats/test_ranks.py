"""Ranks over tasks: by hand, Demsar's printed numbers, scipy and scikit-posthocs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, norm, studentized_range

from faithbench.core.errors import FaithbenchError
from faithbench.stats.ranks import (
    average_ranks,
    critical_difference,
    critical_width,
    nemenyi,
    rank_test,
    tail,
)

# Four methods on 14 data sets, with the mean ranks that Demsar (2006, section 3.2) works through.
DEMSAR = [
    [0.763, 0.768, 0.771, 0.798],
    [0.599, 0.591, 0.590, 0.569],
    [0.954, 0.971, 0.968, 0.967],
    [0.628, 0.661, 0.654, 0.657],
    [0.882, 0.888, 0.886, 0.898],
    [0.936, 0.931, 0.916, 0.931],
    [0.661, 0.668, 0.609, 0.685],
    [0.583, 0.583, 0.563, 0.625],
    [0.775, 0.838, 0.866, 0.875],
    [1.000, 1.000, 1.000, 1.000],
    [0.940, 0.962, 0.965, 0.962],
    [0.619, 0.666, 0.614, 0.669],
    [0.972, 0.981, 0.9751, 0.975],
    [0.957, 0.978, 0.946, 0.970],
]


def test_ranks_by_hand() -> None:
    assert average_ranks([0.1, 0.3, 0.2], True) == [3, 1, 2]
    assert average_ranks([0.1, 0.3, 0.2], False) == [1, 3, 2]
    assert average_ranks([0.5, 0.7, 0.5, 0.5], True) == [3, 1, 3, 3]
    # The last bit is no difference.
    assert average_ranks([0.1 + 0.2, 0.3], True) == [1.5, 1.5]


def test_demsars_example() -> None:
    """The paper prints mean ranks 3.143, 2.000, 2.893, 1.964 and a critical difference of 1.25."""
    found = rank_test(DEMSAR, [True] * 14)
    assert found.mean_ranks == pytest.approx((3.143, 2.0, 2.893, 1.964), abs=5e-4)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert critical_difference(4, 14, alpha=0.10) == pytest.approx(1.12, abs=5e-3)
    assert found.friedman_p == pytest.approx(friedmanchisquare(*zip(*DEMSAR, strict=True)).pvalue)
    assert (found.left_out, found.reason) == (0, "")


@pytest.mark.parametrize(
    ("explainers", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)]
)
def test_critical_values_are_those_of_the_paper(explainers: int, q: float) -> None:
    spread = math.sqrt(explainers * (explainers + 1) / (6 * 8))
    assert critical_difference(explainers, 8) == pytest.approx(q * spread, abs=1.5e-3 * spread)


def test_nemenyi_is_scikit_posthocs() -> None:
    from scikit_posthocs import posthoc_nemenyi_friedman

    rng = np.random.default_rng(0)
    for table in (np.array(DEMSAR), rng.normal(size=(8, 6)), rng.normal(size=(30, 3))):
        found = rank_test(table.tolist(), [True] * len(table))
        expected = posthoc_nemenyi_friedman(table).to_numpy()
        np.testing.assert_allclose(found.nemenyi, expected, atol=1e-9)


def test_the_difference_and_its_p_agree() -> None:
    distance = critical_difference(5, 8)
    p = nemenyi([1.0, 1.0 + distance, 3.0, 3.0, 4.0], 8)
    assert p[0][1] == p[1][0] == pytest.approx(0.05)
    assert p[2][3] == p[0][0] == 1.0


def test_every_row_has_its_direction_and_gaps_leave_it_out() -> None:
    rows = [[0.9, 0.5, 0.1], [0.1, 0.5, 0.9], [0.3, None, 0.4], [7.0, 7.0, 1.0]]
    found = rank_test(rows, [True, False, True, True])
    assert found.ranks == ((1, 2, 3), (1, 2, 3), (1.5, 1.5, 3))
    assert found.mean_ranks == pytest.approx((3.5 / 3, 5.5 / 3, 3)) and found.left_out == 1


def test_when_there_is_no_test() -> None:
    few = rank_test([[1.0, 2.0], [2.0, 3.0]], [True, True])
    assert few.mean_ranks == (2, 1) and few.friedman_p is None and few.nemenyi is None
    assert few.reason == ("ranks are tested from 3 explainers and 2 tasks on (here 2 and 2)")
    one = rank_test([[1.0, 2.0, 3.0], [1.0, None, 2.0]], [False, True])
    assert one.mean_ranks == (1, 2, 3) and one.reason.endswith("(here 3 and 1)")
    assert rank_test([[None, 1.0, 1.0]], [True]).mean_ranks == ()
    equal = rank_test([[1.0] * 3, [2.0] * 3], [True, True])
    assert equal.mean_ranks == (2, 2, 2) and equal.reason == "all ranks are equal"
    with pytest.raises(FaithbenchError, match=r"found rows of \[3, 2\] values and 2 directions"):
        rank_test([[1.0] * 3, [2.0] * 2], [True, True])
    with pytest.raises(FaithbenchError, match=r"found rows of \[\] values"):
        rank_test([], [])


def test_order_of_tasks_and_explainers_does_not_matter() -> None:
    rng = np.random.default_rng(4)
    table = rng.integers(0, 5, size=(9, 5)) / 4
    whole = rank_test(table.tolist(), [True] * 9)
    order = rng.permutation(5)
    moved = rank_test(table[rng.permutation(9)][:, order].tolist(), [True] * 9)
    assert moved.friedman_p == pytest.approx(whole.friedman_p)
    assert moved.mean_ranks == pytest.approx([whole.mean_ranks[i] for i in order])
    np.testing.assert_allclose(moved.nemenyi, np.array(whole.nemenyi)[order][:, order], atol=1e-9)


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

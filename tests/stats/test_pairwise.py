"""Tests of two explainers, by hand, against the golden values and against statsmodels."""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ranksums, ttest_rel, wilcoxon

from faithbench.core.errors import FaithbenchError
from faithbench.stats.pairwise import (
    is_zero_one,
    mcnemar,
    mcnemar_greater,
    mean_tests,
    paired_t,
    paired_tests,
    rank_sum,
    two_sample_t,
)
from faithbench.stats.signed_rank import PairedTest, signed_rank, signed_ranks
from tests.conftest import GOLDEN


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / "stats.json").read_text())
    return found


def test_stored_values(stored: dict[str, Any]) -> None:
    a, b = stored["a"], stored["b"]
    assert signed_rank(a, b).p == pytest.approx(stored["wilcoxon_signedrank"][1], rel=1e-12)
    assert rank_sum(a, b).p == pytest.approx(stored["wilcoxon_ranksums"][1], rel=1e-12)
    assert paired_t(a, b).p == pytest.approx(stored["ttest_rel"][1], rel=1e-9)
    assert paired_t(a, b).p == pytest.approx(stored["l2e_paired_default_is_ttest"], rel=1e-9)
    # Mann-Whitney's U of a is 154 of 400 pairs: more of them lost than won.
    assert rank_sum(a, b).effect == pytest.approx(2 * stored["mannwhitney"][0] / 400 - 1)
    # The smaller rank sum is 61 of 210.
    assert signed_rank(a, b).effect == pytest.approx(-(210 - 2 * 61) / 210)


def test_mcnemar_by_hand() -> None:
    # Five up, one down: (1 + 6) of 2^6 patterns on each side.
    first, second = [1, 1, 1, 1, 1, 0, 1, 0], [0, 0, 0, 0, 0, 1, 1, 0]
    test = mcnemar(first, second)
    assert test == PairedTest(pytest.approx(14 / 64), pytest.approx(4 / 6), 8, "", "McNemar")
    assert mcnemar(second, first).effect == pytest.approx(-4 / 6)
    # One up, one down: as fair as can be.
    assert mcnemar([1, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1]).p == 1.0


def test_mcnemar_one_sided_by_hand() -> None:
    """Of six pairs that differ, five are up: P(at least 5 heads of 6) is 7 / 64."""
    first, second = [1, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1, 1]
    assert mcnemar_greater(first, second) == pytest.approx(7 / 64)
    assert mcnemar_greater(second, first) == pytest.approx(63 / 64)
    assert mcnemar_greater([1, 0], [1, 0]) is None


def test_mcnemar_is_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import mcnemar as reference

    rng = np.random.default_rng(0)
    for chance in (0.5, 0.7, 0.9):
        first, second = rng.random(80) < chance, rng.random(80) < 0.5
        table = [[int((first == i)[second == j].sum()) for j in (1, 0)] for i in (1, 0)]
        found = mcnemar(first.astype(float).tolist(), second.astype(float).tolist())
        assert found.p == pytest.approx(reference(table, exact=True).pvalue, rel=1e-12)


def test_no_test_says_why() -> None:
    short = [1.0, 0.0, 1.0, 1.0, 0.0]
    assert mcnemar(short, [0.0] * 5) == PairedTest(None, 0.0, 5, "only 5 pairs", "McNemar")
    same = PairedTest(None, 0.0, 6, "all differences are zero", "McNemar")
    assert mcnemar([1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 1, 0]) == same
    assert paired_t(short, [0.0] * 5).reason == "only 5 pairs"
    assert paired_t([0.5] * 6, [0.5] * 6).reason == "all differences are zero"
    # Student's t divides by a spread of zero here; the ranks do not.
    constant = paired_t([0.5] * 6, [0.25] * 6)
    assert (constant.p, constant.effect) == (None, 1.0)
    assert constant.reason == "all differences are the same"
    assert rank_sum(short, [0.0] * 9).reason == "only 5 values"
    assert rank_sum([0.5] * 6, [0.5] * 7).reason == "all values are equal"
    with_gaps = rank_sum([1, None, 3, 4, 5, 6, 8], [0, 2, 7, None, None, 9, 10, 11])
    assert with_gaps == rank_sum([1, 3, 4, 5, 6, 8], [0, 2, 7, 9, 10, 11]) and with_gaps.n == 6


def test_mcnemar_refuses_other_values() -> None:
    with pytest.raises(FaithbenchError, match=r"0 and 1, found 0\.5; test such values by signed"):
        mcnemar([1, 0.5], [0, 0])


def test_rank_sum_by_hand() -> None:
    # All of the first are higher: z = 18 / sqrt(6 * 6 * 13 / 12) = 18 / sqrt(39).
    test = rank_sum([7, 8, 9, 10, 11, 12], [1, 2, 3, 4, 5, 6])
    assert test.effect == 1.0
    assert test.p == pytest.approx(math.erfc(18 / math.sqrt(39) / math.sqrt(2)))
    assert rank_sum([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]).effect == 0.0


def test_the_values_choose_the_test() -> None:
    assert is_zero_one([1, 0, None], [1.0]) and not is_zero_one([1, 0], [0.5])
    rng = np.random.default_rng(1)
    zero_one = (rng.random((2, 40)) < 0.6).astype(float).tolist()
    shares = rng.random(40).round(9).tolist()
    columns = [*zero_one, shares]
    found = paired_tests(columns, [(0, 1), (0, 2), (2, 1)])
    assert [test.name for test in found] == ["McNemar", "signed-rank", "signed-rank"]
    assert found == [
        mcnemar(*zero_one), signed_rank(zero_one[0], shares), signed_rank(shares, zero_one[1])
    ]  # fmt: skip


@pytest.mark.parametrize("n", [6, 13, 40, 50, 51, 120])
def test_together_is_one_by_one(n: int) -> None:
    """With missing values and heavy ties, at sizes where scipy counts and where it does not."""
    rng = np.random.default_rng(n)
    table = rng.integers(0, 4, size=(5, n)) / 10
    columns = [[None if rng.random() < 0.05 else float(v) for v in row] for row in table]
    pairs = [(i, j) for i in range(5) for j in range(i)]
    alone = [signed_rank(columns[i], columns[j]) for i, j in pairs]
    for one, together in zip(alone, paired_tests(columns, pairs), strict=True):
        assert (one.n, one.reason) == (together.n, together.reason)
        assert (together.p is None) == (one.p is None)
        assert together.p is None or together.p == pytest.approx(one.p, rel=1e-12)
        assert together.effect == pytest.approx(one.effect, rel=1e-12)


@pytest.mark.parametrize("n", [7, 14, 30, 50, 51, 200])
def test_rows_together_are_scipys_one_by_one(n: int) -> None:
    """Rows with zeros and ties beside rows without: each has the p that scipy gives it alone."""
    rng = np.random.default_rng(n)
    rows = rng.normal(0.2, 1, size=(6, n)).round(9)
    rows[3:] = rows[3:].round(0 if n > 13 else 1)
    rows[5, 0] = 0.0
    for row, test in zip(rows, signed_ranks(rows), strict=True):
        assert test.p == pytest.approx(wilcoxon(row, zero_method="pratt").pvalue, rel=1e-12)


HUNDREDTHS = st.integers(-100, 100).map(lambda i: i / 100)
PAIRS = st.lists(st.tuples(HUNDREDTHS, HUNDREDTHS), min_size=14, max_size=60)


@settings(max_examples=25, deadline=None)
@given(PAIRS, st.randoms(use_true_random=False))
@pytest.mark.parametrize("kind", ["signed-rank", "McNemar", "paired t", "rank-sum"])
def test_symmetric_and_blind_to_order(
    kind: str, pairs: list[tuple[float, float]], random: Random
) -> None:
    run = {"signed-rank": signed_rank, "McNemar": mcnemar, "paired t": paired_t}.get(kind, rank_sum)
    if kind == "McNemar":
        pairs = [(float(a > 0), float(b > 0)) for a, b in pairs]
    first, second = zip(*pairs, strict=True)
    mixed = random.sample(pairs, len(pairs))
    test, turned, moved = run(first, second), run(second, first), run(*zip(*mixed, strict=True))
    assert test.name == kind and -1 <= test.effect <= 1
    assert turned.p == pytest.approx(test.p) and moved.p == pytest.approx(test.p)
    assert turned.effect == pytest.approx(-test.effect)
    assert moved.effect == pytest.approx(test.effect)
    if test.p is None:
        return
    expected = {
        "signed-rank": lambda: wilcoxon(np.round(np.subtract(first, second), 9), None, "pratt"),
        "paired t": lambda: ttest_rel(first, second),
        "rank-sum": lambda: ranksums(first, second),
    }
    if kind in expected:
        assert test.p == pytest.approx(expected[kind]().pvalue, rel=1e-6)


def test_tests_of_means_are_paired_t_with_the_standardised_mean() -> None:
    """Differences 1 2 3 1 2 3: mean 2, sd .894; p is that of `paired_t`."""
    first, second = [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, None], [0.0] * 6 + [1.0]
    test, none = mean_tests([first, second, second], [(0, 1), (1, 2)])
    assert test.p == pytest.approx(paired_t(first, second).p, rel=1e-12)
    assert (test.n, test.name) == (6, "paired t")
    assert test.effect == pytest.approx(2 / np.sqrt(0.8))
    assert none.p is None and none.reason == "all differences are zero"
    (constant,) = mean_tests([[0.5] * 6, [0.25] * 6], [(0, 1)])
    assert constant.reason == "all differences are the same"


def test_two_samples_of_seeds() -> None:
    """By hand: means 2 and 4, pooled variance 1, so t = -2 / sqrt(2/3) with 4 degrees."""
    from scipy.stats import t

    expected = 2 * t.sf(2 / np.sqrt(2 / 3), 4)
    assert two_sample_t([1, 2, 3], [3, 4, 5]) == pytest.approx(expected)
    assert two_sample_t([1.0], [1.0, 2.0]) is None
    assert two_sample_t([1.0, 1.0], [2.0, 2.0]) is None

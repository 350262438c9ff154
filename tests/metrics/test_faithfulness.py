"""AOPC and LOdds: by hand, and in closed form on a linear bag of words."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from faithbench.erasure import rank
from faithbench.metrics import METRICS
from faithbench.types import Bools, Case, Floats

AOPC, LODDS = METRICS["aopc"], METRICS["lodds"]


def case_of(scores: Floats, full: Floats, target: int = 1) -> Case:
    return Case(scores, rank(scores), target, full)


def log_pair(probability: float) -> list[float]:
    return [math.log(1 - probability), math.log(probability)]


# Ten tokens whose probabilities are given


SCORES = np.array([0.5, 0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.0])
PROBABILITIES = [0.7, 0.6, 0.6, 0.5, 0.4, 0.4, 0.3, 0.2, 0.1]


def test_plan_erases_one_more_token_each_time() -> None:
    plan = AOPC.plan(case_of(SCORES, np.array(log_pair(0.8))))
    order = [2, 4, 6, 8, 0, 7, 5, 3, 1]
    assert plan.shape == (9, 10)
    for row in range(9):
        assert np.flatnonzero(~plan[row]).tolist() == sorted(order[: row + 1])
    assert plan[:, 9].all()
    assert np.array_equal(LODDS.plan(case_of(SCORES, np.array(log_pair(0.8)))), plan)


def test_aopc_by_hand() -> None:
    """The falls from 0.8 are 0.1 0.2 0.2 0.3 0.4 0.4 0.5 0.6 0.7: 3.4 in all."""
    case = case_of(SCORES, np.array(log_pair(0.8)))
    answers = np.array([log_pair(p) for p in PROBABILITIES])
    assert AOPC.value(case, answers) == pytest.approx(3.4 / 9)


def test_lodds_by_hand() -> None:
    """ln(p / 0.8) averages to ln(product of all p / 0.8^9) / 9."""
    case = case_of(SCORES, np.array(log_pair(0.8)))
    answers = np.array([log_pair(p) for p in PROBABILITIES])
    product = 0.7 * 0.6 * 0.6 * 0.5 * 0.4 * 0.4 * 0.3 * 0.2 * 0.1
    assert LODDS.value(case, answers) == pytest.approx(math.log(product / 0.8**9) / 9)
    assert LODDS.value(case, answers) == pytest.approx(-0.77908, abs=1e-5)


def test_the_target_is_what_counts() -> None:
    """For the other class the same answers rise from 0.2, by as much."""
    case = case_of(SCORES, np.array(log_pair(0.8)), target=0)
    answers = np.array([log_pair(p) for p in PROBABILITIES])
    assert AOPC.value(case, answers) == pytest.approx(-3.4 / 9)
    rises = [math.log((1 - p) / 0.2) for p in PROBABILITIES]
    assert LODDS.value(case, answers) == pytest.approx(sum(rises) / 9)


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (1, [1] * 9),
        (2, [1, 1, 1, 1, 1, 1, 1, 2, 2]),
        (3, [1, 1, 1, 1, 2, 2, 2, 2, 3]),
        (5, [1, 1, 2, 2, 3, 3, 4, 4, 5]),
        (15, [2, 3, 5, 6, 8, 9, 11, 12, 14]),
    ],
)
def test_short_texts(n: int, counts: list[int]) -> None:
    plan = AOPC.plan(case_of(np.arange(float(n)), np.array(log_pair(0.5))))
    assert (~plan).sum(1).tolist() == counts


# A linear bag of words: the logit of class 1 is the sum of the kept tokens' weights


def answers_of(weights: Floats, plan: Bools) -> Floats:
    logits = plan @ weights
    return np.stack([-np.logaddexp(0, logits), -np.logaddexp(0, -logits)], axis=1)


def bag(weights: Floats, scores: Floats) -> tuple[Case, Floats]:
    full = answers_of(weights, np.ones((1, len(weights)), dtype=bool))[0]
    case = case_of(scores, full)
    return case, answers_of(weights, AOPC.plan(case))


def test_equal_weights_in_closed_form() -> None:
    """With weights ln 2 and m tokens left, the probability is 2^m / (1 + 2^m)."""
    weights = np.full(10, math.log(2))
    case, answers = bag(weights, weights)
    left = [2**m / (1 + 2**m) for m in range(9, 0, -1)]
    full = 1024 / 1025
    assert AOPC.value(case, answers) == pytest.approx(full - sum(left) / 9)
    expected = sum(math.log(p / full) for p in left) / 9
    assert LODDS.value(case, answers) == pytest.approx(expected)


def test_different_weights_in_closed_form() -> None:
    """Weights ln 2^k, best first: without the top ones, 2^(sum of the rest) is the odds."""
    powers = [4, -1, 3, 0, 2, -2, 1, 0, 0, -3]
    weights = np.array(powers) * math.log(2)
    case, answers = bag(weights, weights)
    # Sorted, 4 3 2 1 0 0 0 -1 -2 -3 sum to 4; without the top k there remain:
    remaining = [0, -3, -5, -6, -6, -6, -6, -5, -3]
    left = [2.0**r / (1 + 2.0**r) for r in remaining]
    assert AOPC.value(case, answers) == pytest.approx(16 / 17 - sum(left) / 9)
    expected = sum(math.log(p / (16 / 17)) for p in left) / 9
    assert LODDS.value(case, answers) == pytest.approx(expected)


weights_of_ten = arrays(np.float64, 10, elements=st.floats(-3, 3))


@settings(deadline=None)
@given(weights_of_ten, st.permutations(range(10)))
def test_the_true_weights_are_the_best_explanation(weights: Floats, order: list[int]) -> None:
    """No ranking of a linear model's tokens beats that by its own weights."""
    best, best_answers = bag(weights, weights)
    other, answers = bag(weights, -np.argsort(np.array(order)).astype(float))
    found, than = AOPC.value(best, best_answers), AOPC.value(other, answers)
    assert found is not None
    assert than is not None
    assert found >= than - 1e-12
    assert LODDS.value(best, best_answers) <= LODDS.value(other, answers) + 1e-12

"""A linear bag of words, whose every answer is known: closed forms, and the best ranking.

The logit of class 1 is a bias plus the weights of the tokens that are left, that of class 0 is
0. Let g be the weights towards the predicted class. Without the set E the probability is a
rising function of the margin m - sum of g over E, so of all sets of a size the one with the
highest g is the most harmful, and these sets are nested. Hence, for any weights, ties included,
ranking by g is the best there can be, and ranking by -g the worst, for `aopc`, `lodds`,
`comprehensiveness`, `sufficiency`, `flip_fraction`, `delta_log_odds`, `agreement` and `naopc`
(where the beam always holds these nested sets). For `delta_log_odds_neg` it is so among all
scores with a negative one: whatever set of at most 30% they erase, that of the most negative g
lowers the log-odds' fall further. `tau_loo` is then exactly 1 (or -1): drops are ordered, and
tied, as g is. `fi_entropy` has no direction; it reads sizes only and is blind to a reversal.

With more than two classes this is no theorem: f depends on several sums, and the weights
towards the predicted class alone need not be the best ranking (last test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.metrics.registry import METRICS
from faithbench.models.engine import Engine
from faithbench.models.predictions import predictions
from faithbench.run.measures.aopc_bounds import aopc_bounds
from faithbench.run.score import score
from tests.reference.protocol import TABLE, same, table
from tests.support.cases import attribution_of, bag_encoding, bag_model

ALL = [METRICS[name] for name in (*TABLE, "naopc")]
# Quarters add up exactly, so that equal sums are equal numbers in any order of adding.
weights_of = st.lists(st.integers(-8, 8).map(lambda k: k / 4), min_size=1, max_size=12)
bias_of = st.integers(-12, 12).map(lambda k: k / 4 + 1 / 8)


def measure(
    tokenizer: Any, weights: Sequence[float], bias: float, rankings: Sequence[Any]
) -> list[dict[str, float | None]]:
    """Run the whole table, with bounds, for several explanations of one text."""
    engine = Engine(bag_model(tokenizer, weights, bias))
    encoding = bag_encoding(range(len(weights)))
    (said,) = predictions(engine, [encoding])
    assert said.target == int(bias + sum(weights) > 0)
    found = [attribution_of(encoding, scores, said.target) for scores in rankings]
    bounds = aopc_bounds(engine, encoding, said, "mask")
    many = len(rankings)
    return [
        s.values
        for s in score(engine, found, [said.log_probability] * many, ALL, "mask", [bounds] * many)
    ]


def towards(weights: Sequence[float], bias: float) -> np.ndarray:
    """Return the weights towards the predicted class."""
    return np.array(weights) * (1 if bias + sum(weights) > 0 else -1)


def closed_form(weights: Sequence[float], bias: float, scores: Any) -> dict[str, float | None]:
    """Return the table, `naopc` included, from the margin alone."""
    g = towards(weights, bias).tolist()
    margin = abs(bias + sum(weights))
    # Margins are odd eighths: never 0, so no argmax hangs on a tie.
    left = {}

    def oracle(erased: frozenset[int]) -> tuple[float, bool]:
        if erased not in left:
            rest = margin - sum(g[i] for i in erased)
            left[erased] = (1 / (1 + math.exp(-rest)), rest > 0)
        return left[erased]

    found = table(list(scores), oracle)
    best, worst = (table([sign * x for x in g], oracle)["aopc"] for sign in (1, -1))
    found["naopc"] = None if best == worst else (found["aopc"] - worst) / (best - worst)
    return found


@settings(deadline=None, max_examples=60)
@given(weights_of, bias_of, st.randoms(use_true_random=False))
def test_every_metric_equals_its_closed_form(
    tokenizer: Any, weights: list[float], bias: float, draw: Any
) -> None:
    """For the true weights, their reverse, and scores that have nothing to do with them."""
    scores = [draw.choice([-1.5, -1.0, 0.0, 0.5, 2.0]) for _ in weights]
    true = towards(weights, bias)
    rankings = [true, -true, scores]
    for found, given_scores in zip(
        measure(tokenizer, weights, bias, rankings), rankings, strict=True
    ):
        expected = closed_form(weights, bias, given_scores)
        # A quotient of small differences: bounds a hair apart make it a hair less exact.
        assert same(found, expected, 1e-7), (found, expected)


def better(name: str, first: float, second: float) -> float:
    """Return by how much the first value is better."""
    return (first - second) * (1 if METRICS[name].higher_is_better else -1)


@settings(deadline=None, max_examples=60)
@given(weights_of, bias_of, st.randoms(use_true_random=False))
def test_the_true_weights_are_the_best_explanation_and_their_reverse_the_worst(
    tokenizer: Any, weights: list[float], bias: float, draw: Any
) -> None:
    true = towards(weights, bias)
    n = len(weights)
    random = [[draw.uniform(-1, 1) for _ in range(n)] for _ in range(4)]
    best, worst, *others = measure(tokenizer, weights, bias, [true, -true, *random])
    for name in (*TABLE, "naopc"):
        if name == "fi_entropy":
            assert best[name] == worst[name]
            continue
        for other in (*others, worst):
            if best[name] is not None and other[name] is not None:
                assert better(name, best[name], other[name]) >= -1e-9
        for other in others:
            if worst[name] is not None and other[name] is not None:
                assert better(name, other[name], worst[name]) >= -1e-9
    if len(set(weights)) > 1:
        assert (best["tau_loo"], worst["tau_loo"]) == pytest.approx((1, -1))
        assert best["naopc"] is None or best["naopc"] == pytest.approx(1)
        assert worst["naopc"] is None or worst["naopc"] == pytest.approx(0, abs=1e-9)
    assert (best["delta_log_odds_neg"] is None) == (min(true) >= 0)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(-8, 8), min_size=3, max_size=9, unique=True),
    st.integers(1, 8),
    st.randoms(use_true_random=False),
)
def test_with_distinct_weights_the_best_ranking_is_the_only_one(
    tokenizer: Any, numbers: list[int], spare: int, draw: Any
) -> None:
    """Exchange two neighbours: of up to nine tokens a decile ends between any, and tells."""
    weights = [k / 8 for k in numbers]
    bias = spare / 8 - sum(weights)
    n = len(weights)
    order = sorted(range(n), key=lambda i: -weights[i])
    i = draw.randrange(n - 1)
    order[i], order[i + 1] = order[i + 1], order[i]
    scores = np.empty(n)
    scores[order] = np.arange(n, 0, -1)
    best, other = measure(tokenizer, weights, bias, [np.array(weights), scores])
    for name in ("aopc", "lodds", "naopc"):
        assert better(name, best[name], other[name]) > 0
    assert other["tau_loo"] < 1


def test_equal_weights_in_closed_form(tokenizer: Any) -> None:
    """With weights ln 2 and m tokens left, the probability is 2^m / (1 + 2^m)."""
    (found,) = measure(tokenizer, [math.log(2)] * 10, 0.0, [np.zeros(10)])
    left = {m: 2**m / (1 + 2**m) for m in range(11)}
    full = 1024 / 1025
    assert found == {
        "aopc": pytest.approx(full - sum(left[m] for m in range(1, 10)) / 9),
        "lodds": pytest.approx(sum(math.log(left[m] / full) for m in range(1, 10)) / 9),
        "comprehensiveness": pytest.approx(full - (3 * left[9] + left[8] + left[5]) / 5),
        "sufficiency": pytest.approx(full - (3 * left[1] + left[2] + left[5]) / 5),
        # With all erased the classes are equal, and the first of equals is not "yes".
        "flip_fraction": 1.0,
        "delta_log_odds": pytest.approx(3 * math.log(2)),
        "delta_log_odds_neg": None,
        "agreement": 1.0,
        "tau_loo": None,
        "fi_entropy": None,
        "naopc": None,
    }


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
def test_different_weights_in_closed_form(operator: Any, tokenizer: Any) -> None:
    """Weights ln 2^k for k = 4 3 2 1 0 0 0 -1 -2 -3: the odds are 2 to what is left of 4."""
    powers = np.array([0, -3, 4, 0, 2, -1, 3, -2, 1, 0])
    engine = Engine(bag_model(tokenizer, powers * math.log(2)))
    encoding = bag_encoding(range(10))
    (full,) = predictions(engine, [encoding])
    assert math.exp(full.log_probability) == pytest.approx(16 / 17)
    attribution = attribution_of(encoding, powers, 1)
    (scored,) = score(engine, [attribution], [full.log_probability], ALL[:-1], operator)

    def p(power: int) -> float:
        return 2.0**power / (1 + 2.0**power)

    left = [p(r) for r in (0, -3, -5, -6, -6, -6, -6, -5, -3)]
    drops = [16 / 17 - p(4 - power) for power in powers]
    assert sorted(drops) == [drops[i] for i in np.argsort(powers, kind="stable")]
    assert scored.values == {
        "aopc": pytest.approx(16 / 17 - sum(left) / 9),
        "lodds": pytest.approx(sum(math.log(q * 17 / 16) for q in left) / 9),
        "comprehensiveness": pytest.approx(16 / 17 - (3 * p(0) + p(-3) + p(-6)) / 5),
        "sufficiency": pytest.approx(16 / 17 - (3 * p(4) + p(7) + p(10)) / 5),
        # Without the first, the odds are even, and the first of equals is the other class.
        "flip_fraction": pytest.approx(1 / 10),
        "delta_log_odds": pytest.approx(9 * math.log(2)),
        "delta_log_odds_neg": pytest.approx(-6 * math.log(2)),
        "agreement": 1.0,
        "tau_loo": pytest.approx(1.0),
        # Of 16 in all: 4 3 3 2 2 1 1.
        "fi_entropy": pytest.approx(
            -sum(k / 16 * math.log(k / 16) for k in (4, 3, 3, 2, 2, 1, 1)) / math.log(10)
        ),
    }


def test_of_three_classes_the_weights_of_one_do_not_tell() -> None:
    """Token a adds 3 to all logits, b takes 2 from the others: a weighs more, b is what counts.

    f = e^x / (e^x + 2 e^y) with x = 3 a, y = 3 a - 2 b. Without a nothing changes.
    """

    def f(a: int, b: int) -> float:
        return 1 / (1 + 2 * math.exp(-2 * b))

    weight_a, weight_b = 3, 0
    assert weight_a > weight_b
    assert f(0, 1) == f(1, 1)
    assert f(1, 0) < f(1, 1)

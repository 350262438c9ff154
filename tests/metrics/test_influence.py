"""Measures of attention against influence: worked arrays, brute force, and what controls get."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations, product
from math import comb, log, sqrt
from typing import Any

import numpy as np
import pytest
from scipy.stats import kendalltau

from faithbench.metrics.faithfulness import normalised_entropy
from faithbench.metrics.influence import (
    Influence,
    influence_values,
    on_state_values,
    support_auc,
    tau_ceiling,
)
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import METRICS, influence_metrics
from tests.support.paths import GOLDEN

STORED: dict[str, dict[str, Any]] = json.loads((GOLDEN / "metrics/influence.json").read_text())

TEXT = Influence(
    attention=np.array([0.7, 0.3, 0.0, 0.0]),
    input_gradient=np.array([4.0, 1.0, 3.0, 2.0]),
    state_gradient=np.array([2.0, 3.0, 1.0, 0.5]),
    input_change=np.array([0.4, 0.3, 0.1, 0.2]),
    state_change=np.array([0.5, 0.2, 0.0, 0.0]),
    on_states=np.array([[3.0, 1.0, 0.0, 0.0], [2.0, 1.0, 3.0, 2.0]]),
    positions=np.array([0, 3]),
)
"""Four words, of which attention reaches the first two."""


@pytest.mark.parametrize("name", STORED)
def test_entropies_are_the_stored_ones(name: str) -> None:
    """Of the gradients of a BERT, and of the changes without each token."""
    stored = STORED[name]
    assert normalised_entropy(np.array(stored["g_prob"])) == pytest.approx(stored["H_g"], abs=1e-12)
    changes = np.array(stored["loo_prob_abs"])
    assert normalised_entropy(changes) == pytest.approx(stored["H_D"], abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 2.0, 2.0], 1),
        ([0.0, 5.0, 0.0], 0),
        ([1.0, -1.0, 0.0], log(2) / log(3)),
        ([3.0, 1.0], (0.75 * log(4 / 3) + 0.25 * log(4)) / log(2)),
        ([1.0], None),
        ([0.0, 0.0], None),
        ([], None),
    ],
)
def test_an_entropy_by_hand(scores: list[float], expected: float | None) -> None:
    found = normalised_entropy(np.array(scores))
    assert found is None if expected is None else found == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_ceiling_is_the_best_tau_of_all_strict_orders(n: int) -> None:
    """With k of n weights above 0: sqrt(1 - C(n-k, 2) / C(n, 2))."""
    orders = [np.array(order) for order in permutations(range(n))]
    for k in range(1, n + 1):
        attention = np.array([*range(k, 0, -1), *[0] * (n - k)], dtype=float)
        best = max(kendalltau(attention, order).statistic for order in orders)
        assert tau_ceiling(attention) == pytest.approx(best, abs=1e-12)
        assert tau_ceiling(attention) == pytest.approx(
            sqrt(1 - comb(n - k, 2) / comb(n, 2)), abs=1e-12
        )


def test_the_ceiling_counts_ties_above_0_too() -> None:
    """Of ten pairs, one is tied at .4 and one at 0."""
    assert tau_ceiling(np.array([0.4, 0.4, 0.2, 0, 0])) == pytest.approx(sqrt(8 / 10))
    assert tau_ceiling(np.array([0.25] * 4)) is None
    assert tau_ceiling(np.array([1.0])) is None


def test_the_auc_is_a_count_of_pairs() -> None:
    draw = np.random.default_rng(3)
    for n in (2, 5, 9):
        attention = np.where(np.arange(n) < n // 2, 0.1, 0)
        influence = draw.integers(0, 4, n).astype(float)  # with ties
        pairs = list(product(influence[: n // 2], influence[n // 2 :]))
        wins = sum(inside > outside for inside, outside in pairs)
        ties = sum(inside == outside for inside, outside in pairs)
        expected = (wins + 0.5 * ties) / len(pairs)
        assert support_auc(attention, influence) == pytest.approx(expected, abs=1e-15)
    assert support_auc(np.array([0.5, 0.5]), np.array([1.0, 2.0])) is None
    assert support_auc(np.array([0.0, 0.0]), np.array([1.0, 2.0])) is None


def test_every_measure_by_hand() -> None:
    values = influence_values(TEXT)
    assert values.pop("length") == 4 and values.pop("support") == 0.5
    assert values.pop("entropy_attention") == pytest.approx(
        -(0.7 * log(0.7) + 0.3 * log(0.3)) / log(4)
    )
    ceiling = sqrt(5 / 6)  # one of six pairs is tied
    assert values.pop("ceiling") == pytest.approx(ceiling)
    # Of the five pairs that are not tied in attention, gradient_x agrees on 3 (the first word's)
    # and disagrees on 2; gradient_h agrees on 4, loo_x on all, and loo_h has the same tie.
    assert values.pop("tau_gradient_x") == pytest.approx(1 / sqrt(5 * 6))
    assert values.pop("tau_gradient_h") == pytest.approx(3 / sqrt(5 * 6))
    assert values.pop("tau_loo_x") == pytest.approx(5 / sqrt(5 * 6))
    assert values.pop("tau_loo_h") == pytest.approx(1)
    assert values.pop("share_gradient_x") == pytest.approx(1 / 5)
    assert values.pop("share_loo_x") == pytest.approx(1)
    assert values.pop("auc_gradient_x") == 0.5 and values.pop("auc_loo_x") == 1
    assert values.pop("top_gradient_x") == 1 and values.pop("top_loo_x") == 1
    inside = {"gradient_x": 1, "gradient_h": -1, "loo_x": 1, "loo_h": 1}
    assert {name: values.pop(f"inside_{name}") for name in inside} == pytest.approx(inside)
    tenths = np.array([4, 3, 2, 1]) / 10
    expected = -(tenths * np.log(tenths)).sum() / log(4)
    assert values.pop("entropy_gradient_x") == pytest.approx(expected)
    assert values.pop("entropy_loo_x") == pytest.approx(expected)
    assert values == on_state_values(TEXT), "nothing else is there"


def test_how_far_an_h_is_that_of_its_word() -> None:
    """h_0 has 3 of 4 from its word, h_3 has 2 of 8 from its own, which is second, tied."""
    one = -(0.75 * log(0.75) + 0.25 * log(0.25)) / log(4)
    eighths = np.array([2, 1, 3, 2]) / 8
    other = -(eighths * np.log(eighths)).sum() / log(4)
    assert on_state_values(TEXT) == pytest.approx(
        {
            "entropy_on_h": (one + other) / 2,
            "own_share": (0.75 + 0.25) / 2,
            "own_rank": (1 + 2) / 2,
            "own_first": 0.5,
        }
    )


def test_an_h_that_nothing_moves_counts_for_nothing() -> None:
    still = replace(TEXT, on_states=np.array([[3.0, 1.0, 0.0, 0.0], [0.0] * 4]))
    assert on_state_values(still)["own_share"] == 0.75
    nothing = on_state_values(replace(TEXT, on_states=np.zeros((2, 4))))
    assert nothing == dict.fromkeys(("entropy_on_h", "own_share", "own_rank", "own_first"))


def test_what_is_not_defined_is_none() -> None:
    """Equal attention has no order, and one word has no pairs; h that cannot be asked is left."""
    flat = influence_values(replace(TEXT, attention=np.full(4, 0.25), state_change=None))
    assert flat["support"] == 1 and flat["entropy_attention"] == pytest.approx(1)
    without = ("ceiling", "tau_gradient_x", "share_loo_x", "auc_loo_x", "inside_loo_x")
    assert [flat[name] for name in (*without, "tau_loo_h", "inside_loo_h")] == [None] * 7
    one = np.ones(1)
    alone = influence_values(Influence(one, one, one, one, one, one[:, None], np.zeros(1, int)))
    assert {name for name, value in alone.items() if value is not None} == {"length", "support"}
    still = influence_values(replace(TEXT, input_change=np.zeros(4)))
    assert still["top_loo_x"] is None, "attention on the first word would agree by accident"
    assert alone.keys() == flat.keys() == influence_values(TEXT).keys()


def many_texts(kind: str) -> list[Influence]:
    """Return 60 texts of 12 words, 4 of them attended, whose influences are all of one kind.

    The oracle's have the order of attention, and are strict on the words without any.
    """
    draw = np.random.default_rng(7)
    texts = []
    for _ in range(60):
        attention = np.zeros(12)
        attention[draw.permutation(12)[:4]] = draw.dirichlet(np.ones(4))
        influence = {
            "random": draw.random(12),
            "constant": np.ones(12),
            "oracle": attention + draw.random(12) * 1e-9,
        }[kind]
        every = np.tile(influence, (12, 1))
        texts.append(Influence(attention, *[influence] * 4, every, np.arange(12)))
    return texts


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("random", {"tau": 0, "share": 0, "auc": 0.5, "top": 1 / 12, "inside": 0}),
        ("constant", {"tau": None, "share": None, "auc": 0.5, "inside": None}),
        ("oracle", {"tau": sqrt(38 / 66), "share": 1, "auc": 1, "top": 1, "inside": 1}),
    ],
)
def test_what_controls_get(kind: str, expected: dict[str, float | None]) -> None:
    """Means of 60 texts: no tau exceeds its ceiling, at which its share is 1."""
    values = [influence_values(text) for text in many_texts(kind)]
    # The mean of 60 taus of 4 words has a standard deviation of .063, and the others less.
    tolerance = 0.15 if kind == "random" else 1e-12
    for name, mean in expected.items():
        column: list[Any] = [text[f"{name}_gradient_x"] for text in values]
        if mean is None:
            assert set(column) == {None}, name
        else:
            assert np.mean(column) == pytest.approx(mean, abs=tolerance), name


def test_metrics_take_sizes_of_scores_for_attention() -> None:
    """Signs do not count, and each metric is the study's value of the same meaning."""
    same = {
        "tau_gradient": "tau_gradient_x",
        "tau_gradient_share": "share_gradient_x",
        "top_gradient": "top_gradient_x",
        "support_auc": "auc_gradient_x",
        "tau_inner_gradient": "tau_gradient_h",
        "inside_inner_gradient": "inside_gradient_h",
        "tau_inner_loo": "tau_loo_h",
        "inner_entropy": "entropy_on_h",
        "own_share": "own_share",
        "own_rank": "own_rank",
    }
    metrics = influence_metrics(METRICS.values())
    assert [metric.name for metric in metrics] == list(same)
    values = influence_values(TEXT)
    signed = TEXT.attention * [1, -1, 1, -1]
    for metric in metrics:
        assert metric.value(signed, TEXT) == values[same[metric.name]], metric.name
    unasked = replace(TEXT, state_change=None)
    assert METRICS["tau_inner_loo"].score(signed, unasked) is None  # type: ignore[attr-defined]


def test_ties_on_both_sides_leave_room_for_no_more_than_the_ceiling() -> None:
    """Leave-one-out changes of 0 are ties too, and may be where attention has its own."""
    draw = np.random.default_rng(0)
    for _ in range(300):
        first, second = draw.integers(0, 4, size=(2, 7)).astype(float)
        tau, ceiling = kendall(first, second), tau_ceiling(first, second)
        assert (tau is None) == (ceiling is None)
        assert tau is None or ceiling is None or abs(tau) <= ceiling + 1e-12
    weights = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    assert tau_ceiling(weights, weights) == 1
    assert kendall(weights, np.array([5.0, 4, 3, 2, 1])) == pytest.approx(tau_ceiling(weights))
    coarse = np.array([1.0, 1, 0, 0, 0])  # orders 6 of the 9 pairs that the weights order
    assert tau_ceiling(weights, coarse) == pytest.approx(sqrt(6 / 9))
    assert kendall(weights, coarse) == pytest.approx(sqrt(6 / 9))

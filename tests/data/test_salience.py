"""Salience functions against graphs worked out by hand, scipy, and the released code's values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from faithbench.core.errors import FaithbenchError
from faithbench.data.salience import (
    FLOOR,
    KINDS,
    TermStatistics,
    salience_of,
    textrank,
    textrank_released,
    uniform,
)

TEXTS = ["good film", "good good plot", "bad film", "bad plot !", "film !", "bad !"]
LABELS = [1, 1, 0, 0, 2, 0]


@pytest.fixture(scope="module")
def statistics() -> TermStatistics:
    return TermStatistics.of((text.split() for text in TEXTS), LABELS)


# What the released code of SaLoss gives the words of five texts, by word.
RELEASED = [
    (
        "w7 w4 w7 w7 w6 w5 w7 w1 w7 w5 w7 w10 w4 w7 w5 w5 w7 w5 w9",
        {
            "w7": 1.3710769867232937,
            "w4": 1.0627664069674012,
            "w6": 0.7695827115855525,
            "w5": 1.2772081850704011,
            "w1": 0.9805210365970309,
            "w10": 0.9682772445094889,
            "w9": 0.5705674285468321,
        },
    ),
    (
        "w4 w3 w2 w2 w2 w1",
        {
            "w4": 0.9341840277777776,
            "w3": 0.9341840277777776,
            "w2": 1.1974479166666665,
            "w1": 0.9341840277777776,
        },
    ),
    (
        "w3 w5 w5 w6 w4 w9 w4 w2 w8 w8 w9 w5 w5 w4 w5 w8 w1 w3 w8",
        {
            "w3": 1.0411024694678541,
            "w5": 1.200863367401829,
            "w6": 0.6352195525272448,
            "w4": 1.200863367401829,
            "w9": 1.200863367401829,
            "w2": 0.8819207359591974,
            "w8": 1.1982160610045227,
            "w1": 0.6409510788356942,
        },
    ),
    (
        "w3 w6 w6 w4 w4 w2 w5 w0 w4 w5 w3",
        {
            "w3": 1.0827563822751323,
            "w6": 0.7770129188712521,
            "w4": 1.1888178681657848,
            "w2": 0.8809272927689594,
            "w5": 1.0863861221340387,
            "w0": 0.9840994157848324,
        },
    ),
    (
        "w6 w5 w2 w3 w10 w3 w7 w9 w5 w6 w6 w8 w8 w0 w10 w0 w9 w4 w3",
        {
            "w6": 1.250509675232438,
            "w5": 1.1801911580291553,
            "w2": 0.6999418166035354,
            "w3": 1.1880128752008723,
            "w10": 1.1883355278638659,
            "w7": 0.8387790525998622,
            "w9": 1.1883355278638659,
            "w8": 0.9832345805354683,
            "w0": 0.9149641259900139,
            "w4": 0.5676956600809229,
        },
    ),
]


@pytest.mark.parametrize(("text", "scores"), RELEASED)
def test_released_textrank_has_the_released_values(text: str, scores: dict[str, float]) -> None:
    tokens = text.split()
    expected = [scores[token] for token in tokens]
    np.testing.assert_allclose(textrank_released(tokens), expected, atol=1e-9, rtol=0)


def test_released_textrank_of_one_token_is_what_damping_leaves() -> None:
    np.testing.assert_allclose(textrank_released(["film"]), [0.15])


def test_a_path_of_three_by_hand() -> None:
    # a - b - c with a window of 2. One step from (1, 1, 1): a = .15 + .85 * b/2 = .575,
    # b = .15 + .85 * (a + c) = 1.85, c = .575; they sum to 3.
    one_step = np.array([0.575, 1.85, 0.575]) / 3
    np.testing.assert_allclose(textrank(["a", "b", "c"], window=2, steps=1), one_step)
    # The second step: a = .15 + .425 * 1.85 = .93625, b = .15 + .85 * 1.15 = 1.1275.
    two_steps = np.array([0.93625, 1.1275, 0.93625]) / 3
    np.testing.assert_allclose(textrank(["a", "b", "c"], window=2, steps=2), two_steps)
    # At rest a = .15 + .425 b and b = .15 + 1.7 a, so that a = .21375 / .2775.
    at_rest = 0.21375 / 0.2775
    scores = textrank(["a", "b", "c"], window=2, steps=200)
    np.testing.assert_allclose(scores[0], at_rest / (2 * at_rest + 0.15 + 1.7 * at_rest), atol=1e-6)


def test_a_window_of_four_joins_tokens_up_to_three_apart() -> None:
    # a b c d e: all pairs but a-e. Degrees 3, 4, 4, 4, 3; one step: a = .15 + .85 * 3/4 = .7875,
    # b = .15 + .85 * (1/3 + 1/4 + 1/4 + 1/3).
    ends, middle = 0.7875, 0.15 + 0.85 * (2 / 3 + 1 / 2)
    expected = np.array([ends, middle, middle, middle, ends]) / 5
    np.testing.assert_allclose(textrank(list("abcde"), steps=1), expected)


def test_repeated_tokens_are_one_node_without_an_edge_to_itself() -> None:
    # a a b: one edge, so that both nodes are 1 at every step, and each token has a third.
    np.testing.assert_allclose(textrank(["a", "a", "b"]), [1 / 3] * 3)
    # b a a c is the path b - a - c with a window of 2, however often a is repeated.
    path = np.array([0.575, 1.85, 1.85, 0.575])
    np.testing.assert_allclose(textrank(["b", "a", "a", "c"], window=2, steps=1), path / path.sum())


def test_a_pair_counts_once_in_both_orders() -> None:
    # a b a c: the edges a-b and a-c, as in b a c; seen in both orders, a-b weighs no more.
    repeated = textrank(["a", "b", "a", "c"], window=2)
    assert repeated[1] == pytest.approx(repeated[3])


@pytest.mark.parametrize("tokens", [["film"], ["film"] * 5])
def test_textrank_of_one_word_is_uniform(tokens: list[str]) -> None:
    np.testing.assert_allclose(textrank(tokens), uniform(tokens))


def test_steps_end_early_at_rest() -> None:
    # A path forgets its start by .85 a step: changes are below 1e-6 before the hundredth.
    early = textrank(["a", "b", "c"], window=2, steps=100)
    np.testing.assert_array_equal(early, textrank(["a", "b", "c"], window=2, steps=10_000))
    assert np.abs(early - textrank(["a", "b", "c"], window=2, steps=50)).max() > 1e-6


def test_chi_squared_is_that_of_scipy(statistics: TermStatistics) -> None:
    for token in ("good", "film", "bad", "plot", "!"):
        holds = [token in text.split() for text in TEXTS]
        table = [
            [
                sum(h == held and label == wanted for h, label in zip(holds, LABELS, strict=True))
                for wanted in (0, 1, 2)
            ]
            for held in (True, False)
        ]
        expected = chi2_contingency(table, correction=False).statistic
        assert statistics.chi_squared[token] == pytest.approx(expected, abs=1e-12)


def test_chi_squared_salience_by_hand(statistics: TermStatistics) -> None:
    # "good" is in both texts of class 1 and in no other, "bad" in all three of class 0:
    # each table is perfect, with statistic n = 6. An unseen token has 0, and the floor alone.
    scores = statistics.chi2(["good", "bad", "dog"])
    half = (1 - FLOOR) / 2 + FLOOR / 3
    np.testing.assert_allclose(scores, [half, half, FLOOR / 3])
    np.testing.assert_allclose(statistics.chi2(["dog", "cat"]), [0.5, 0.5])


def test_a_token_of_every_text_tells_nothing_of_the_class() -> None:
    everywhere = TermStatistics.of([["a", "b"], ["a"]], ["yes", "no"])
    assert everywhere.chi_squared == {"a": 0, "b": pytest.approx(2)}
    one_class = TermStatistics.of([["a", "b"], ["a"]], ["yes", "yes"])
    np.testing.assert_allclose(one_class.chi2(["a", "b"]), [0.5, 0.5])


def test_tfidf_by_hand(statistics: TermStatistics) -> None:
    # "good" is in 2 of 6 texts, twice here; "film" in 3; "dog" in none.
    good, film, dog = (1 + math.log(7 / (1 + held)) for held in (2, 3, 0))
    raw = np.array([2 * good, film, 2 * good, dog])
    scores = statistics.tfidf(["good", "film", "good", "dog"])
    np.testing.assert_allclose(scores, (1 - FLOOR) * raw / raw.sum() + FLOOR / 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["film", "film film", "a good film , a good plot !", "x"])
def test_salience_is_a_distribution_without_zeros(
    kind: str, text: str, statistics: TermStatistics
) -> None:
    scores = salience_of(kind, text.split(), statistics)
    assert scores.shape == (len(text.split()),)
    assert scores.sum() == pytest.approx(1)
    assert scores.min() > 0


@pytest.mark.parametrize("kind", KINDS)
def test_empty_text_is_refused(kind: str, statistics: TermStatistics) -> None:
    with pytest.raises(FaithbenchError, match="a text without tokens has no salience"):
        salience_of(kind, [], statistics)
    with pytest.raises(FaithbenchError, match="a text without tokens has no salience"):
        textrank_released([])


def test_unknown_kind_and_missing_statistics_are_refused() -> None:
    with pytest.raises(FaithbenchError, match="did you mean 'textrank'"):
        salience_of("textrang", ["a"], None)
    for kind in ("tfidf", "chi2"):
        with pytest.raises(FaithbenchError, match=f"salience '{kind}' counts the terms"):
            salience_of(kind, ["a"], None)


@pytest.mark.parametrize(("texts", "labels"), [(2, 1), (1, 2), (0, 0)])
def test_statistics_need_one_label_per_text(texts: int, labels: int) -> None:
    with pytest.raises(FaithbenchError, match="one label per text"):
        TermStatistics.of([["a"]] * texts, [0] * labels)

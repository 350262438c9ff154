"""Stability by hand, as the released code of L2E has it, and its invariances."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithbench.metrics.overlap import iou, mean_over_neighbours
from faithbench.metrics.stability import (
    Labelled,
    five_labels,
    iou_of_labels,
    iou_of_signs,
    labelled_words,
    largest_change,
    mean_iou_of_pairs,
    top_words,
)

STORED = json.loads(
    (Path(__file__).parents[1] / "reference/golden/metrics/l2e_stability.json").read_text()
)
NONE: frozenset[str] = frozenset()
SCORES = st.lists(st.integers(-50, 50), min_size=1, max_size=30)


def words(text: str) -> frozenset[str]:
    return frozenset(text)


def labels(*texts: str) -> Labelled:
    a, b, c, d = map(words, texts)
    return a, b, c, d


@pytest.mark.parametrize(
    ("n", "count"), [(1, 1), (4, 1), (5, 2), (8, 2), (10, 3), (15, 5), (35, 11), (45, 14)]
)
def test_three_tenths_rounded_half_up(n: int, count: int) -> None:
    strings = [f"w{i}" for i in range(n)]
    found = top_words(strings, np.arange(n, dtype=float))
    assert found == set(strings[n - count :])


def test_top_words_ties_and_repetitions() -> None:
    assert top_words(list("abcde"), np.array([1.0, 2, 2, 2, 0])) == words("bc")
    assert top_words(list("abbcd"), np.array([0.0, 5, 4, 3, 0])) == words("b")
    assert top_words(list("ab"), np.array([-2.0, -1])) == words("b")
    assert top_words(list("abcd"), np.array([1.0, 2, 3, 4]), share=0.5) == words("cd")
    assert top_words([], np.zeros(0)) == NONE


def test_seeds_agree_pair_by_pair() -> None:
    assert mean_iou_of_pairs([words("ab"), words("ab"), words("bc")]) == pytest.approx(
        (1 + 1 / 3 + 1 / 3) / 3
    )
    assert mean_iou_of_pairs([words("ab")]) is None
    assert mean_iou_of_pairs([NONE, NONE]) is None


def test_the_most_sensitive_window_counts() -> None:
    assert largest_change([0.5, None, 2.0]) == 2.0
    assert largest_change([None]) is None and largest_change([]) is None


def test_five_labels_by_hand() -> None:
    # The mean positive score is 2, the mean negative one -3.
    assert five_labels(np.array([1.0, 3, 2, 0, -1, -5, -3])).tolist() == [3, 4, 3, 2, 1, 0, 1]
    assert five_labels(np.array([0.7, -0.2])).tolist() == [3, 1]
    assert five_labels(np.array([0.1] * 7)).tolist() == [3] * 7
    assert five_labels(np.zeros(2)).tolist() == [2, 2]
    assert five_labels(np.zeros(0)).tolist() == []


@pytest.mark.parametrize("stored", STORED["labels"])
def test_five_labels_of_the_released_code(stored) -> None:
    assert five_labels(np.array(stored["weights"])).tolist() == stored["five"]


def test_labelled_words_and_their_filters() -> None:
    strings = ["the", "film", "is", "not", "great", "film", "dull"]
    scores = np.array([1.0, 3, 0, -1, 2, -2, -6])
    # Positive mean 2: film high, the and great low; negative mean -3: dull high, not, film low.
    assert labelled_words(strings, scores) == (
        {"dull"}, {"not", "film"}, {"the", "great"}, {"film"},
    )  # fmt: skip
    # Labels are cut before words are dropped.
    assert labelled_words(strings, scores, drop_stop_words=True) == (
        {"dull"}, {"film"}, {"great"}, {"film"},
    )  # fmt: skip
    marked = np.array([True, False, False, True, True, True, False])
    assert labelled_words(strings, scores, only=marked) == (
        NONE, {"not", "film"}, {"the", "great"}, NONE,
    )  # fmt: skip
    assert labelled_words(strings, scores, True, marked) == (NONE, {"film"}, {"great"}, NONE)


def test_one_score_and_one_mark_per_word() -> None:
    with pytest.raises(ValueError, match="1 scores for 2 words"):
        top_words(["a", "b"], np.zeros(1))
    with pytest.raises(ValueError, match="1 marks for 2 words"):
        labelled_words(["a", "b"], np.zeros(2), only=np.ones(1, dtype=bool))


def test_labels_are_compared_one_by_one() -> None:
    a, b = labels("a", "bc", "", "de"), labels("a", "c", "d", "ef")
    # Intersections 1 + 1 + 0 + 1, unions 1 + 2 + 1 + 3.
    assert iou_of_labels(a, b) == pytest.approx(3 / 7)
    # Merged: negative abc and ac, positive de and def.
    assert iou_of_signs(a, b) == pytest.approx((2 + 2) / (3 + 3))
    empty = labels("", "", "", "")
    assert iou_of_labels(empty, empty) is None
    assert iou_of_signs(empty, empty) == 0
    assert iou_of_labels(a, empty) == 0


def test_the_mean_of_labels_over_neighbours() -> None:
    empty = labels("", "", "", "")
    labelled = [labels("a", "", "", "b"), labels("a", "", "", "c"), empty, empty]
    neighbours = ((1, 2), (), (3,), ())
    first, second, third, fourth = mean_over_neighbours(labelled, neighbours, iou_of_labels)
    assert first == pytest.approx((1 / 3 + 0) / 2)
    assert second is None and third is None and fourth is None
    by_sign = mean_over_neighbours(labelled, neighbours, iou_of_signs)
    assert by_sign[2] == 0 and by_sign[1] is None


@pytest.mark.parametrize("stored", STORED["iou"])
@pytest.mark.parametrize(("number", "who"), list(enumerate(["our", "base", "random"])))
def test_the_released_comparison(stored, number: int, who: str) -> None:
    pair = []
    for side in (stored["a"], stored["b"]):
        positive, negative = side[f"{who}_exp_pos"], side[f"{who}_exp_neg"]
        # However the words are spread over high and low, merging joins them again.
        pair.append(
            (
                frozenset(negative[:1]),
                frozenset(negative[1:]),
                frozenset(positive[1:]),
                frozenset(positive[:1]),
            )
        )
    found = iou_of_signs(pair[0], pair[1])
    assert found == pytest.approx(stored["multilabel"][number], abs=1e-12)
    positive = [frozenset(stored[x][f"{who}_exp_pos"]) for x in "ab"]
    assert (iou(*positive) or 0.0) == pytest.approx(stored["rank"][number], abs=1e-12)


@given(SCORES)
def test_monotone_transforms_leave_the_top_words(values: list[int]) -> None:
    scores = np.array(values, dtype=float)
    strings = [f"w{i % 7}" for i in range(len(values))]
    wanted = top_words(strings, scores)
    assert top_words(strings, 3.7 * scores) == wanted
    assert top_words(strings, scores + 11) == wanted
    assert top_words(strings, np.tanh(scores / 50)) == wanted


@given(SCORES, st.floats(1e-6, 1e6))
def test_scaling_leaves_the_five_labels_and_turning_mirrors_them(
    values: list[int], factor: float
) -> None:
    scores = np.array(values, dtype=float)
    wanted = five_labels(scores)
    np.testing.assert_array_equal(five_labels(factor * scores), wanted)
    np.testing.assert_array_equal(five_labels(-scores), 4 - wanted)


@given(SCORES, SCORES)
def test_an_iou_is_symmetric_and_between_0_and_1(a: list[int], b: list[int]) -> None:
    x, y = (
        labelled_words([f"w{i % 5}" for i in range(len(v))], np.array(v, dtype=float))
        for v in (a, b)
    )
    found = iou_of_labels(x, y)
    assert found == iou_of_labels(y, x)
    assert found is None or 0 <= found <= 1
    assert iou_of_labels(x, x) in (None, 1.0)

"""From scores to erased rows, on numbers worked by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.encoding import encode
from faithbench.erasure import erase, rank, top_count, without
from faithbench.types import Encoding, Example


def test_rank_is_by_descending_score() -> None:
    assert rank(np.array([0.1, -2.0, 0.5, 0.0])).tolist() == [2, 0, 3, 1]


def test_ties_go_to_the_earlier_token() -> None:
    assert rank(np.array([1.0, 2.0, 1.0, 2.0, 1.0])).tolist() == [1, 3, 0, 2, 4]
    # Long enough for a sort that is not stable to show.
    assert rank(np.tile([0.0, 2.0, 1.0], 40)).tolist() == [
        *range(1, 120, 3),
        *range(2, 120, 3),
        *range(0, 120, 3),
    ]
    assert rank(np.array([0.0, -0.0, 0.0])).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("n", "percent", "expected"),
    [
        (10, 10, 1),
        (10, 90, 9),
        (5, 10, 1),  # 0.5 rounds up
        (5, 30, 2),  # 1.5 too, where half-to-even says 2 as well
        (5, 50, 3),  # 2.5: half-to-even would say 2
        (25, 10, 3),  # 2.5 again
        (4, 10, 1),  # 0.4 would be none: at least one
        (1, 10, 1),
        (1, 90, 1),
        (14, 10, 1),  # 1.4
        (16, 10, 2),  # 1.6
        (7, 100, 7),
        (30, 70, 21),  # a product that is not exact in binary fractions
        (200, 0.25, 1),  # 0.5
    ],
)
def test_top_count(n: int, percent: float, expected: int) -> None:
    assert top_count(n, percent) == expected


@settings(deadline=None)
@given(st.integers(1, 600), st.integers(1, 100))
def test_top_count_in_whole_numbers(n: int, percent: int) -> None:
    assert top_count(n, percent) == max(1, (2 * percent * n + 100) // 200)


def test_without_the_first_of_an_order() -> None:
    order = np.array([2, 0, 3, 1])
    assert without(order, 1).tolist() == [True, True, False, True]
    assert without(order, 3).tolist() == [False, True, False, False]
    assert without(order, 0).tolist() == [True] * 4
    assert not without(order, 4).any()
    assert order.tolist() == [2, 0, 3, 1]


# A pair: [CLS] good film [SEP] dull plot [SEP], of which either text may be erasable.
IDS = [2, 5, 7, 3, 15, 10, 3]
TYPES = [0, 0, 0, 0, 1, 1, 1]


@pytest.fixture
def pair(tiny_model: Any) -> Encoding:
    encoding = encode(tiny_model("bert"), Example("a", "good film", 0, "dull plot"), "text")
    assert (encoding.ids.tolist(), encoding.types.tolist()) == (IDS, TYPES)
    assert encoding.erasable.tolist() == [False, True, True, False, False, False, False]
    return encoding


@pytest.mark.parametrize(
    ("operator", "token", "ids", "types"),
    [
        ("mask", 4, [2, 4, 7, 3, 15, 10, 3], TYPES),
        ("pad", 0, [2, 0, 7, 3, 15, 10, 3], TYPES),
        ("delete", 0, [2, 7, 3, 15, 10, 3], [0, 0, 0, 1, 1, 1]),
    ],
)
def test_erase_the_first_word_of_a_pair(
    operator: Any, token: int, ids: list[int], types: list[int], pair: Encoding
) -> None:
    row = erase(pair, np.array([False, True]), operator, token)
    assert (row[0].tolist(), row[1].tolist()) == (ids, types)
    assert pair.ids.tolist() == IDS


@pytest.mark.parametrize("operator", ["mask", "pad", "delete"])
def test_erase_all_or_nothing(operator: Any, pair: Encoding) -> None:
    ids, types = erase(pair, np.array([True, True]), operator, 4)
    assert (ids.tolist(), types.tolist()) == (IDS, TYPES)
    ids, types = erase(pair, np.array([False, False]), operator, 4)
    deleted = operator == "delete"
    assert ids.tolist() == ([2, 3, 15, 10, 3] if deleted else [2, 4, 4, 3, 15, 10, 3])
    assert types.tolist() == ([0, 0, 1, 1, 1] if deleted else TYPES)


def test_erase_in_the_second_text(tiny_model: Any) -> None:
    encoding = encode(tiny_model("bert"), Example("a", "good film", 0, "dull plot"), "text_b")
    ids, types = erase(encoding, np.array([True, False]), "delete", 0)
    assert (ids.tolist(), types.tolist()) == ([2, 5, 7, 3, 15, 3], [0, 0, 0, 0, 1, 1])
    both = encode(tiny_model("bert"), Example("a", "good film", 0, "dull plot"), "both")
    ids, _ = erase(both, np.array([True, False, False, True]), "mask", 4)
    assert ids.tolist() == [2, 5, 4, 3, 4, 10, 3]

"""From scores to erased rows, on numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.erasure import erase, erase_tokens, only, top_count, without
from faithbench.core.types import Encoding, Example, rank
from faithbench.models.encoding import encode
from tests.support.cases import case_of


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


# Four tokens between two special ones, the best first: 3, 1, 4, 2.
RANKED = case_of([0.5, -1.0, 0.9, 0.1])


def test_the_order_of_a_case_is_of_places() -> None:
    assert RANKED.order.tolist() == [3, 1, 4, 2]
    assert (rank(RANKED.scores) + 1).tolist() == [3, 1, 4, 2]
    assert case_of([0.0, 0.0, 1.0, 0.0]).order.tolist() == [3, 1, 2, 4]


def test_without_the_first_of_an_order() -> None:
    assert without(RANKED, 1).tolist() == [True, True, True, False, True, True]
    assert without(RANKED, 3).tolist() == [True, False, True, False, False, True]
    assert without(RANKED, 0).tolist() == [True] * 6
    assert without(RANKED, 4).tolist() == [True, False, False, False, False, True]
    assert RANKED.order.tolist() == [3, 1, 4, 2]


def test_only_the_first_of_an_order() -> None:
    assert only(RANKED, 1).tolist() == [True, False, False, True, False, True]
    assert only(RANKED, 3).tolist() == [True, True, False, True, True, True]
    assert only(RANKED, 0).tolist() == without(RANKED, 4).tolist()
    assert only(RANKED, 4).tolist() == [True] * 6


def test_what_may_not_be_erased_stays() -> None:
    """Places 2 and 3 may not: they have scores, but neither plan touches them."""
    every = np.array([9.0, 1.0, 5.0, 4.0, 3.0, 2.0])
    places = np.array([1, 4, 5])
    case = replace(RANKED, scores=every[places], positions=places, every_score=every)
    assert without(case, 2).tolist() == [True, True, True, True, False, False]
    assert only(case, 1).tolist() == [True, False, True, True, True, False]


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


@pytest.mark.parametrize(
    ("operator", "ids", "types"),
    [
        ("mask", [2, 4, 7, 3, 4, 10, 3], TYPES),
        ("delete", [2, 7, 3, 10, 3], [0, 0, 0, 1, 1]),
    ],
)
def test_erase_tokens_by_their_positions(
    operator: Any, ids: list[int], types: list[int], pair: Encoding
) -> None:
    """A mask over the whole input reaches any token, erasable or not."""
    keep = np.array([True, False, True, True, False, True, True])
    row = erase_tokens(pair, keep, operator, 4)
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

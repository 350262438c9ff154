"""Rows: numbers rounded and checked as they are made, and one line for each."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.rows import ResultRow, to_header, to_line
from tests.support.builders import HEAD, KEY, LINE, row


def test_one_row_is_this_line() -> None:
    assert to_header(KEY) == HEAD
    assert to_line(row()) == LINE


def test_numbers_are_rounded_when_a_row_is_made() -> None:
    noisy = np.array([0.123456789, -1.23456789e-20, 123456789.0, -0.0], dtype=np.float64)
    made = row(tokens=list("abcd"), scores=noisy, values={"a": 0.12345678949, "b": np.float32(2)})
    assert made.scores == (0.1234568, -1.234568e-20, 123456800.0, 0.0)
    assert made.values == {"a": 0.123456789, "b": 2.0}
    assert made.probability == 0.333333333
    assert str(made.scores[3]) == "0.0" and str(row().values["lodds"]) == "0.0"
    assert made == row(tokens=list("abcd"), scores=noisy * (1 + 1e-12), values=made.values)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"scores": [0.0, float("nan")]}, "example 'e1': a score is nan; numbers should be"),
        ({"values": {"aopc": -np.inf}}, "example 'e1': value 'aopc' is -inf; numbers"),
        ({"probability": float("inf")}, "example 'e1': probability is inf; numbers should"),
        ({"scores": [0.0]}, "example 'e1': 1 scores for 2 erasable tokens; an explainer"),
    ],
)
def test_unusable_numbers_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(FaithbenchError, match=message):
        row(**parts)


def test_rows_are_closed_and_frozen() -> None:
    facts = msgspec.structs.asdict(row())
    with pytest.raises(msgspec.ValidationError, match="1 scores for 2 tokens"):
        msgspec.convert({**facts, "scores": [1.0]}, ResultRow)
    with pytest.raises(msgspec.ValidationError, match="unknown field `words`"):
        msgspec.convert({**facts, "words": []}, ResultRow)
    with pytest.raises(AttributeError, match="immutable"):
        row().target = 2
    assert row().by_seed is not row().by_seed

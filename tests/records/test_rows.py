"""Rows: numbers rounded and checked as they are made, and one line for each."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Attribution, Encoding, Example
from faithbench.records.rows import ResultRow, add_values, row_of, to_header, to_line
from tests.support.builders import HEAD, KEY, LINE, row


def test_one_row_is_this_line() -> None:
    assert to_header(KEY) == HEAD
    assert to_line(row()) == LINE


def test_the_cost_of_another_network_is_written_only_where_there_is_one() -> None:
    assert to_line(row(elsewhere=0.0)) == to_line(row(elsewhere=1e-12)) == LINE
    made = row(elsewhere=0.0612345678912)
    line = to_line(made)
    assert line == LINE.replace(b'"forwards"', b'"elsewhere":0.061234568,"forwards"')
    assert msgspec.json.decode(line, type=ResultRow) == made
    assert msgspec.json.decode(LINE, type=ResultRow).elsewhere == 0.0
    with pytest.raises(msgspec.ValidationError, match=r"`\$\.elsewhere`"):
        msgspec.json.decode(line.replace(b":0.06", b":-0.06"), type=ResultRow)


def test_an_answer_is_written_only_where_there_is_one() -> None:
    assert to_line(row(answer="")) == LINE
    made = row(answer="Ann met")
    assert to_line(made) == LINE.replace(b'{"backwards"', b'{"answer":"Ann met","backwards"')
    assert msgspec.json.decode(to_line(made), type=ResultRow) == made


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
        ({"elsewhere": float("inf")}, "example 'e1': elsewhere is inf; numbers should"),
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


def attribution(scores: list[float], gap: float | None = None) -> Attribution:
    """Return an attribution of an example of four tokens, of which the middle two are evidence."""
    encoding = Encoding(
        example=Example(id="e7", text="good film", label=1),
        ids=np.arange(4),
        types=np.zeros(4, dtype=np.int64),
        erasable=np.array([False, True, True, False]),
        words=np.array([-1, 0, 1, -1]),
        spans=((0, 0), (0, 4), (5, 9), (0, 0)),
        word_spans=((0, 4), (5, 9)),
        truncated=0,
    )
    return Attribution(
        encoding, 1, np.array(scores), 0.5, forwards=3, backwards=1, gap=gap, elsewhere=0.25
    )


def test_a_row_of_attributions_has_every_seed() -> None:
    first = attribution([9.0, 0.1, 0.2, 9.0], gap=-0.123456789)
    made = row_of(
        [first, attribution([9.0, 0.3, 0.4, 9.0])],
        tokens=["good", "film"],
        right=True,
        probability=0.75,
        values={"aopc": [0.25, 0.5], "lodds": [None, 1.0], "max_sensitivity": [2.0]},
        rows_asked=8,
        distinct_rows=6,
        right_without_rationale=False,
        curves=[[0.5, 0.25], [0.25, 0.25]],
    )
    assert made == ResultRow(
        id="e7",
        target=1,
        label=1,
        right=True,
        probability=0.75,
        tokens=("good", "film"),
        scores=(0.1, 0.2),
        more_scores=((0.3, 0.4),),
        values={"aopc": 0.375, "lodds": 1.0, "max_sensitivity": 2.0},
        by_seed={"aopc": (0.25, 0.5), "lodds": (None, 1.0)},
        curve=(0.375, 0.25),
        right_without_rationale=False,
        rows_asked=8,
        distinct_rows=6,
        forwards=3,
        backwards=1,
        gap=-0.1234568,
        elsewhere=0.25,
    )


def test_values_are_added_to_a_new_row() -> None:
    before = row(values={"aopc": 0.5})
    after = add_values(before, {"lodds": [None, None], "iou": [0.1, 0.2, None]})
    assert before.values == {"aopc": 0.5}
    assert after.values == {"aopc": 0.5, "lodds": None, "iou": 0.15}
    assert after.by_seed == {"lodds": (None, None), "iou": (0.1, 0.2, None)}
    with pytest.raises(FaithbenchError, match="value 'iou' is nan"):
        add_values(before, {"iou": [0.0, float("nan")]})

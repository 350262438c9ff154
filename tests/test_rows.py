"""Rows: numbers rounded and checked as they are made, files checked as they are read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from faithbench.checkpoint import open_rows
from faithbench.errors import FaithbenchError
from faithbench.rows import Row, read_rows, times_path
from tests.builders import HEAD, KEY, LINE, row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sst2.random-0.jsonl"


def test_one_row_is_this_line(path: Path) -> None:
    with open_rows(path, KEY) as file:
        assert file.done == {}
        file.append([(row(), 0.25)])
        assert file.done == {"e1": row()} and file.seconds == {"e1": 0.25}
    assert path.read_bytes() == HEAD + LINE
    times = path.parent / "sst2.random-0.times.jsonl"
    assert times_path(path) == times
    assert times.read_bytes() == b'{"id":"e1","seconds":0.25}\n'


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
    with pytest.raises(ValidationError, match="1 scores for 2 tokens"):
        Row.model_validate({**row().model_dump(), "scores": [1.0]})
    with pytest.raises(ValidationError, match="Extra inputs"):
        Row.model_validate({**row().model_dump(), "words": []})
    with pytest.raises(ValidationError, match="frozen"):
        row().target = 2


def test_reading_checks_the_file(path: Path) -> None:
    with pytest.raises(
        FaithbenchError, match=r"cannot read rows file .*: No such file.*beside its"
    ):
        read_rows(path)
    path.write_bytes(HEAD + LINE)
    assert read_rows(path, hashlib.sha256(HEAD + LINE).hexdigest()) == (row(),)
    with pytest.raises(FaithbenchError, match=r"has sha256 [0-9a-f]{64}, its record says 00; rest"):
        read_rows(path, "00")
    for torn in (HEAD + LINE[:-1], HEAD + LINE + b"{\n", HEAD[:-1], b""):
        path.write_bytes(torn)
        with pytest.raises(FaithbenchError, match="ends in half a line; run the cell again"):
            read_rows(path)
        assert path.read_bytes() == torn, "reading changes nothing"


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50, deadline=None)
@given(st.text(), st.lists(st.tuples(st.text(), finite)), st.dictionaries(st.text(), finite))
def test_any_row_survives(
    tmp_path_factory: pytest.TempPathFactory,
    example: str,
    scored: list[tuple[str, float]],
    values: dict[str, float],
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    tokens, scores = [token for token, _ in scored], [score for _, score in scored]
    made = row(example, tokens=tokens, scores=scores, values=values)
    with open_rows(path, KEY, fresh=True) as file:
        file.append([(made, 0.0)])
    before = path.read_bytes()
    assert read_rows(path) == (made,)
    with open_rows(path, KEY) as file:
        file.finish([made])
    assert path.read_bytes() == before

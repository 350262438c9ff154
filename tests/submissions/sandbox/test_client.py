"""What a worker may send: the next thing that is due, and of scores only finite numbers."""

from __future__ import annotations

import json

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.sandbox.client import Collected

CONFINED = b'{"holds": ["20 s"], "missing": []}'
READY = b'{"ready": true}'


@pytest.fixture
def collected() -> Collected:
    made = Collected({"a": 2, "b": 1}, 3, lambda confined: None, lambda *_: None)
    made.take(CONFINED)
    made.take(READY)
    return made


def line(name: str, *scores: list[float]) -> bytes:
    return json.dumps({"id": name, "scores": scores}).encode()


def test_scores_are_kept(collected: Collected) -> None:
    collected.take(line("a", [1, -2.5]))
    collected.take(line("b", [0.1]))
    assert collected.scores == {"a": ((1.0, -2.5),), "b": ((0.1,),)}


def test_three_seeds_are_three_lists(collected: Collected) -> None:
    collected.take(line("b", [1.0], [2.0], [3.0]))
    assert collected.scores["b"] == ((1.0,), (2.0,), (3.0,))
    with pytest.raises(FaithbenchError, match="under 1 seeds for example 'a', where 3 are due"):
        collected.take(line("a", [1.0, 2.0]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"id": "a", "scores": [[NaN, 1.0]]}', "finite number"),
        (b'{"id": "a", "scores": [[1e999, 1.0]]}', "finite number"),
        (b'{"id": "a", "scores": [[1e200, 1.0]]}', "less than or equal to 10{30} "),
        (b'{"id": "a", "scores": [["1", 1.0]]}', "valid number"),
        (b'{"id": "a", "scores": [[null, 1.0]]}', "valid number"),
        (b'{"id": "a", "scores": []}', "at least 1 item"),
        (b'{"id": "a", "scores": [[1.0]], "aopc": 1.0}', "unknown key 'aopc'"),
        (b'{"id": "a", "scores": [[1.0]]}', "sent 1 scores for the 2 erasable tokens of .*'a'"),
        (b'{"id": "a", "scores": [[1.0, 2.0], [1.0]]}', "sent 1, 2 scores"),
        (b'{"id": "c", "scores": [[1.0]]}', "'c', which was not asked for"),
        (b'{"id": "a", "scores": [[1.0, 2.0], [1.0, 2.0]]}', "under 2 seeds"),
        (b"\x80\x04\x95\x10\x00pickle", "not a valid message"),
        (b"[" * 100_000, "not a valid message"),
        (b"", "not a valid message"),
        (b'{"error": "boom \\u001b[31m\\nx"}', r"stopped: boom \[31m x$"),
    ],
)
def test_anything_else_is_refused(collected: Collected, data: bytes, message: str) -> None:
    with pytest.raises(FaithbenchError, match=message) as caught:
        collected.take(data)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)
    assert not collected.scores


def test_an_example_has_its_scores_once(collected: Collected) -> None:
    collected.take(line("b", [1.0]))
    with pytest.raises(FaithbenchError, match="'b' twice"):
        collected.take(line("b", [2.0]))


def test_scores_cannot_come_first() -> None:
    made = Collected({"a": 1}, 3, lambda confined: None, lambda *_: None)
    with pytest.raises(FaithbenchError, match="not a valid message"):
        made.take(line("a", [1.0]))

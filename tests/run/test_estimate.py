"""The time that a run still takes: by the work done so far, in words."""

from __future__ import annotations

import pytest

from faithbench.run import estimate
from faithbench.run.backends.processes import Processes
from faithbench.run.backends.serial import Serial
from faithbench.run.chunk import Chunk
from faithbench.run.estimate import Estimate, expected, in_words


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(estimate.time, "monotonic", lambda: now[0])
    return now


def test_the_rest_goes_as_fast_as_what_is_done(clock: list[float]) -> None:
    left = Estimate(total=10.0, start=100.0)
    clock[0] += 30
    assert str(left) == "", "nothing is known before the first piece"
    left.add(1.0)
    assert str(left) == ", about 4 min left"  # 9 pieces of 30 s
    clock[0] += 190
    assert str(left) == ", about 80 s left", "it counts down meanwhile"
    left.add(4.0)
    assert str(left) == ", about 4 min left"  # 5 pieces of 44 s
    left.add(5.0)
    assert str(left) == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "a few seconds"),
        (9.9, "a few seconds"),
        (44, "about 40 s"),
        (94, "about 90 s"),
        (100, "about 2 min"),
        (5000, "about 83 min"),
        (9000, "about 2.5 h"),
    ],
)
def test_a_duration_is_as_rough_as_it_is_known(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_chunks_are_divided_among_processes_and_timing_is_not() -> None:
    chunks = [Chunk((), frozenset(), {}, work=2e11)] * 3
    assert expected(Serial(), chunks, 4e10, rate=1e10) == (64.0, 1)
    assert expected(Processes(2), chunks, 4e10, rate=1e10) == (34.0, 2)
    assert expected(Processes(8), chunks, 0.0, rate=1e10) == (20.0, 3), "one for each chunk"
    assert expected(Processes(8), chunks[:1], 0.0, rate=1e11) == (2.0, 1)
    small = [Chunk((), frozenset(), {}, work=1e10)] * 3
    sparing = Processes(2, least_work=2e11)
    assert expected(sparing, chunks, 4e10, rate=1e10) == (34.0, 2)
    assert expected(sparing, small, 0.0, rate=1e10) == (3.0, 1), "not worth a fork"
    assert expected(Processes(2), small, 0.0, rate=1e10) == (1.5, 2), "asked for by --jobs"

"""Chunks are handed out in their order, but for large ones that would leave workers idle."""

from __future__ import annotations

from heapq import heapreplace

import pytest

from faithbench.run.backends.waiting import Waiting
from faithbench.run.chunk import Chunk


def waiting_of(works: list[float], workers: int) -> Waiting:
    return Waiting([Chunk((), frozenset(), {}, work) for work in works], workers)


def ends(works: list[float], workers: int) -> list[float]:
    """Return when each worker ends, if work is time."""
    waiting, times = waiting_of(works, workers), [0.0] * workers
    while (index := waiting.take()) is not None:
        heapreplace(times, times[0] + works[index])
    return sorted(times)


def test_equal_chunks_keep_their_order_and_a_lost_one_comes_first() -> None:
    waiting = waiting_of([1.0] * 4, 2)
    assert [waiting.take(), waiting.take()] == [0, 1]
    waiting.put_back(0)
    assert [waiting.take() for _ in range(4)] == [0, 2, 3, None]


@pytest.mark.parametrize(
    ("works", "workers", "last"),
    [
        ([100, 150, 200, 250, 400, 512], 2, 812),  # in their order: 912
        ([1, 1, 1, 1, 4], 2, 4),  # in their order: 6
        ([2] * 16, 4, 8),
        ([1, 2, 3, 10], 3, 10),
    ],
)
def test_workers_end_together(works: list[float], workers: int, last: float) -> None:
    assert ends(works, workers)[-1] == last

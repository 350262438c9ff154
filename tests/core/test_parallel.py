"""Work in several processes: in order, with the errors of the first that fails."""

from __future__ import annotations

import os
import sys

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.parallel import map_in_processes


def test_results_come_in_order_from_other_processes() -> None:
    results = map_in_processes(lambda item: (item * item, os.getpid()), range(7), processes=2)
    assert [square for square, _ in results] == [0, 1, 4, 9, 16, 25, 36]
    if sys.platform == "linux":
        assert os.getpid() not in {process for _, process in results}


@pytest.mark.parametrize(("items", "processes"), [([3], 2), ([3, 4], 1), ([], 2)])
def test_little_work_is_done_here(items: list[int], processes: int) -> None:
    assert map_in_processes(lambda item: (item, os.getpid()), items, processes) == [
        (item, os.getpid()) for item in items
    ]


@pytest.mark.parametrize("processes", [1, 3])
def test_the_first_error_is_passed_on(processes: int) -> None:
    def work(item: int) -> int:
        if item > 1:
            raise FaithbenchError(f"item {item} is wrong; fix it")
        return item

    with pytest.raises(FaithbenchError, match="item 2 is wrong; fix it"):
        map_in_processes(work, [0, 1, 2, 3], processes)

"""Map a function over items in several processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# In a worker: the work and its items. `pool.map(work, items)` would need no global, but it pickles
# both: a closure cannot be, and a leaderboard's pages are closures over a board of many megabytes.
# A forked worker has them already, so that only indices and results travel.
_inherited: list[Any] = []


def default_processes() -> int:
    """Return the number of cores this process may use; 1 where processes cannot safely fork."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def map_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int | None = None
) -> list[Result]:
    """Return the result for each item, in their order; the first item that fails raises.

    Results are pickled, work and items are not. Where processes cannot fork (macOS, Windows), or
    there is one core, all is done in this process. The default is one process per core.
    """
    count = min(processes or default_processes(), len(items))
    if count < 2 or sys.platform != "linux":
        return [work(item) for item in items]
    with ProcessPoolExecutor(count, get_context("fork"), _inherit, (work, items)) as pool:
        return list(pool.map(_do, range(len(items))))


def _inherit(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    _inherited[:] = [work, items]


def _do(index: int) -> Any:
    work, items = _inherited
    return work(items[index])

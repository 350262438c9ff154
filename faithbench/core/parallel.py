"""Work spread over processes, where there are cores for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_inherited: list[Any] = []
"""In a worker: the work and its items. They need not be sent, since a fork has them."""


def map_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], processes: int | None = None
) -> list[Result]:
    """Return the work's result for each item, in their order; an error is that of the first.

    Results travel between processes, items do not. Where processes cannot fork (macOS,
    Windows), or there is one core, all is done right here. The default is one per core.
    """
    forks = sys.platform == "linux"
    if processes is None:
        processes = len(os.sched_getaffinity(0)) if forks else 1
    count = min(processes, len(items))
    if count < 2 or not forks:
        return [work(item) for item in items]
    with ProcessPoolExecutor(count, get_context("fork"), _inherit, (work, items)) as pool:
        return list(pool.map(_do, range(len(items))))


def _inherit(work: Callable[[Any], Any], items: Sequence[Any]) -> None:
    _inherited[:] = [work, items]


def _do(place: int) -> Any:
    work, items = _inherited
    return work(items[place])

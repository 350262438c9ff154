"""Progress: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBars

from faithbench.core.types import Progress

_FIRST_LINE, _NEXT_LINE = 2, 10
"""Seconds before the first plain line of progress, and between two of them."""


@contextmanager
def progress_on(console: Console, first: str = "starting") -> Iterator[Progress]:
    """Yield a reporter: bars on a terminal, a plain line now and then elsewhere.

    Until the first report, a moving bar says `first`: a terminal shows something at once.
    """
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with ProgressBars(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        waiting = bars.add_task(first, total=None)  # no total: the bar moves to and fro
        known: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            bars.update(waiting, visible=False)
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done)

        yield report


def _plain_lines(console: Console) -> Progress:
    due = time.monotonic() + _FIRST_LINE
    due_by_name: dict[str, float] = {}

    def report(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now > due_by_name.get(what, due):
            due_by_name[what] = now + _NEXT_LINE
            console.print(f"{what}: {done}/{total}", highlight=False)

    return report

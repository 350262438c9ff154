"""Progress: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBars
from rich.table import Column

if TYPE_CHECKING:  # with numpy: the first line should not wait for it
    from faithbench.core.types import Progress

_FIRST_LINE, _NEXT_LINE = 2, 5
"""Seconds before the first plain line of progress, and between two of them."""


@contextmanager
def progress_on(console: Console, first: str = "starting") -> Iterator[Progress]:
    """Yield a reporter: one live line on a terminal, a plain line now and then elsewhere.

    What cannot be counted is a plain line at once; on a terminal it is the live line until the
    next report, and then stays above it. At first the live line says `first`, so that a terminal
    is never blank.
    """
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    with ProgressBars(*_columns(), console=console, transient=True) as bars:
        # Two lines of which one is seen: a bar without a total moves to and fro.
        waiting = bars.add_task(first, total=None, count="")
        counted = bars.add_task("", count="", visible=False)

        uncounted: list[str] = []

        def report(what: str, done: int, total: int) -> None:
            while uncounted:
                _print(console, uncounted.pop())
            if total:
                count = f"{done}/{total}"
                bars.update(counted, description=what, completed=done, total=total, count=count)
            else:
                uncounted.append(what)
                bars.update(waiting, description=what)
            bars.update(waiting, visible=not total)
            bars.update(counted, visible=bool(total))

        yield report


def _columns() -> tuple[ProgressColumn, ...]:
    """Return what the live line shows; the clock moves even while a long step reports nothing."""
    # 50 columns leave room for bar, count and clock in a line of 80; a second line has the rest.
    what = Column(overflow="fold", max_width=50)
    return (
        TextColumn("{task.description}", markup=False, table_column=what),
        BarColumn(bar_width=10),
        TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
    )


def _plain_lines(console: Console) -> Progress:
    due = time.monotonic() + _FIRST_LINE

    def report(what: str, done: int, total: int) -> None:
        nonlocal due
        now = time.monotonic()
        if not total or done == total or now > due:
            due = now + _NEXT_LINE
            _print(console, f"{what}: {done}/{total}" if total else what)

    return report


def _print(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)

"""Progress: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from faithbench.cli import display
from faithbench.cli.display import progress_on


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


def test_progress_is_a_plain_line_after_two_seconds_and_every_ten(clock: list[float]) -> None:
    console = Console(file=io.StringIO(), width=80)
    with progress_on(console) as report:
        for seconds, done in ((0, 1), (3, 2), (12, 3), (14, 4), (23, 5), (23.5, 6)):
            clock[0] = 100.0 + seconds
            report("explaining", done, 6)
        report("measuring", 1, 1)
    out = console.file.getvalue()
    assert out == "explaining: 2/6\nexplaining: 4/6\nexplaining: 6/6\nmeasuring: 1/1\n"


def test_a_terminal_shows_something_before_the_first_report() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress_on(console, "loading data and model"):
        pass
    out = console.file.getvalue()
    assert "loading data and model" in out


def test_progress_is_a_bar_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress_on(console) as report:
        report("explaining", 2, 6)
    out = console.file.getvalue()
    assert "2/6" in out and "\x1b[" in out and "explaining: 2/6" not in out

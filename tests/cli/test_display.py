"""Progress: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from faithbench.cli import display
from faithbench.cli.display import progress_on


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    return now


def test_plain_lines_come_after_two_seconds_and_every_five(clock: list[float]) -> None:
    console = Console(file=io.StringIO(), width=80)
    with progress_on(console) as report:
        for seconds, done in ((0, 1), (3, 2), (7, 3), (9, 4), (13, 5), (13.5, 6)):
            clock[0] = 100.0 + seconds
            report("explaining lime", done, 6)
        report("measuring", 1, 2)
    out = console.file.getvalue()
    assert out == "explaining lime: 2/6\nexplaining lime: 4/6\nexplaining lime: 6/6\n"


def test_what_cannot_be_counted_is_a_plain_line_at_once(clock: list[float]) -> None:
    console = Console(file=io.StringIO(), width=20)
    with progress_on(console, "reading") as report:
        report("loading the model [b]bundled:sst2", 0, 0)
        clock[0] += 3
        report("explaining lime", 1, 6)
    assert console.file.getvalue() == "loading the model [b]bundled:sst2\n", "unbroken"


def test_a_terminal_shows_something_before_the_first_report() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress_on(console, "loading data and model"):
        pass
    out = console.file.getvalue()
    assert "loading data and model" in out


def test_progress_is_one_live_line_on_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress_on(console) as report:
        report("explaining lime, about 3 min left", 2, 6)
        report("erasing tokens, about 3 min left", 3, 6)
    out = console.file.getvalue()
    assert "3/6" in out and "\x1b[" in out and "lime: 2/6" not in out
    last = out.rsplit("erasing tokens", 1)
    assert "explaining" not in last[1], "the second took the place of the first"


def test_a_line_that_cannot_be_counted_stays_above_the_live_one() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress_on(console) as report:
        report("64 examples x 3 explainers", 0, 0)
        report("explaining lime", 2, 64)
    out = console.file.getvalue()
    assert "64 examples x 3 explainers\n" in out


def test_a_long_step_is_told_in_two_lines_of_eighty_columns() -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    name = "integrated-gradients"
    with progress_on(console) as report:
        report(f"explaining {name} on {'e' * 14} and 15 more, about 30 min left", 1000, 1000)
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue()).splitlines()
    parts = [part.rstrip() for line in lines for part in line.split("\r")]
    assert max(map(len, parts)) <= 80
    first = next(part for part in parts if part.startswith(f"explaining {name} on"))
    assert "1000/1000" in first
    assert any(part.endswith("and 15 more, about 30 min left") for part in parts), parts

"""Untrusted code in a subprocess: each way of misbehaving is one line, and ends the process."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.process import enforced_here, run_isolated
from tests.support.sandboxed import LIMITS, failure_of, linux, run_code


def test_lines_come_back_whole() -> None:
    code = "os.write(line, b'one\\ntw'); os.write(line, b'o\\nhalf')"
    assert run_code(code) == ["one", "two"]


def test_a_long_line_comes_back_whole() -> None:
    code = "os.write(line, b'x' * 300_000 + b'\\n')"
    assert run_code(code) == ["x" * 300_000]


def test_a_hanging_process_is_stopped() -> None:
    start = time.monotonic()
    message = failure_of("import time\ntime.sleep(60)", Limits(seconds=1))
    assert message.startswith("took longer than 1 s and was stopped")
    assert time.monotonic() - start < 20


def test_one_that_closes_its_pipes_and_goes_on_is_stopped() -> None:
    code = "import time\nfor fd in (1, 2, line): os.close(fd)\ntime.sleep(60)"
    assert "went on running" in failure_of(code)


def test_a_crash_is_named() -> None:
    assert "was ended by a signal (Aborted) before" in failure_of("os.abort()")
    message = failure_of("print('goodbye \\x1b[31m'); sys.exit(3)")
    assert message == (
        "ended with exit code 3 before it had sent all scores; it last printed: goodbye [31m"
    )
    assert failure_of("sys.exit(1)").endswith("; it printed nothing")


def test_a_million_lines_are_too_many() -> None:
    assert "printed more than 1 MB" in failure_of("while True: print('x' * 99)")


def test_two_gigabytes_are_not_read() -> None:
    code = "data = b'x' * 65536\nwhile True: os.write(line, data)"
    assert "sent more than 1 MB" in failure_of(code)


def test_what_the_reader_refuses_ends_the_process() -> None:
    def refuse(line: bytes) -> None:
        raise FaithbenchError("no")

    code = "import os, sys, time\nos.write(int(sys.argv[1]), b'x\\n'); time.sleep(60)"
    start = time.monotonic()
    with temporary_folder() as home, pytest.raises(FaithbenchError, match="no"):
        run_isolated([sys.executable, "-c", code], home, LIMITS, refuse)
    assert time.monotonic() - start < 20


@linux
def test_children_in_the_group_are_ended_too() -> None:
    code = """
if child := os.fork():
    os.write(line, b"%d\\n" % child)
    os._exit(0)
import time
time.sleep(60)
"""
    (name,) = run_code(code)
    state = Path(f"/proc/{name}/stat")
    for _ in range(50):  # until the kernel has seen to it
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the child is still there")


@linux
def test_everything_is_enforced_here() -> None:
    confined = enforced_here()
    assert confined.missing == ()
    assert confined.holds == (
        "600 s",
        "memory 4 GB",
        "no network",
        "no other processes",
        "no reach to running processes",
        "writes only in a temporary folder",
        "reads only code, model and its own folder",
        "a temporary folder that can be removed",
    )


def test_the_environment_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    code = "os.write(line, '\\n'.join([*os.environ.values(), os.getcwd(), '']).encode())"
    lines = run_code(code)
    assert "secret" not in lines
    assert str(Path.home()) not in lines


def test_nothing_is_left_of_a_deep_folder() -> None:
    with temporary_folder() as home:
        deep = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
        run_isolated([sys.executable, "-c", deep], home, LIMITS, lambda line: None)
        kept = home
    assert not kept.exists()

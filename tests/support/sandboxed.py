"""Code in a confined process: what it attempts, and what becomes of each attempt."""

from __future__ import annotations

import sys

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.landlock import landlock_version
from faithbench.submissions.sandbox.process import run_isolated

LIMITS = Limits(seconds=20, memory_mb=600, sent_mb=1, printed_mb=1, file_mb=1)
CONFINE = """
import os, sys
line = int(sys.argv[1])
{before}
from pathlib import Path
from faithbench.submissions.sandbox.confine import Limits, confine
held = confine(Limits(20, 600, file_mb=1), [], Path.cwd())
def send(text):
    os.write(line, text.encode())
def attempt(name, do):
    try:
        do()
        send(f"{{name}}: done\\n")
    except OSError as error:
        send(f"{{name}}: {{type(error).__name__}}\\n")
"""
linux = pytest.mark.skipif(not landlock_version(), reason="needs Landlock")


def run_code(code: str, limits: Limits = LIMITS) -> list[str]:
    """Run code that sends lines through the descriptor `line`, and return them."""
    return _lines(f"import os, sys\nline = int(sys.argv[1])\n{code}", limits)


def run_confined(code: str, *, before: str = "") -> list[str]:
    """Run code in a process that has confined itself; `before` runs first, unconfined."""
    return _lines(CONFINE.format(before=before) + code, LIMITS)


def failure_of(code: str, limits: Limits = LIMITS, *, confined: bool = False) -> str:
    """Run code that fails, and return the one line that says how."""
    with pytest.raises(FaithbenchError) as caught:
        run_confined(code) if confined else run_code(code, limits)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def _lines(body: str, limits: Limits) -> list[str]:
    lines: list[str] = []
    with temporary_folder() as home:
        command = [sys.executable, "-c", body]
        run_isolated(command, home, limits, lambda line: lines.append(line.decode()))
    return lines

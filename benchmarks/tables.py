"""Keep each benchmark's section of RESULTS.md, with the machine it ran on where speed matters."""

from __future__ import annotations

import datetime
import os
import platform
import re
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import torch

from faithbench.run.device_benchmark import describe_device

RESULTS = Path(__file__).parent / "RESULTS.md"


def best_seconds(work: Callable[[], object], repeats: int = 5) -> float:
    """Return the shortest of several CPU timings, after one call outside the clock.

    Time waiting for a core does not count; still, leave the process a core of its own, or
    small operations, which live in the caches, will look slower than they are.
    """
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def machine() -> str:
    """Describe the machine without naming it: processor and vector level decide speed."""
    packages = ", ".join(f"{p} {version(p)}" for p in ("torch", "transformers", "captum"))
    today = datetime.datetime.now(datetime.UTC).date()
    return (
        f"{today}; {platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
        f"{torch.get_num_threads()} threads, {describe_device(torch.device('cpu'))}; {packages}"
    )


def write_section(title: str, command: str, body: str, *, timed: bool = True) -> None:
    """Print a section and put it into RESULTS.md, in place of the one it had there.

    What is not `timed` follows from records alone: neither machine nor date is told, so that the
    same records give the same section.
    """
    ran_on = f" ({machine()})" if timed else ""
    section = f"## {title}\n\n`{command}`{ran_on}\n\n{body.strip()}\n"
    print(section)
    old = RESULTS.read_text() if RESULTS.exists() else "# Measured results\n"
    pattern = re.compile(rf"## {re.escape(title)}\n.*?(?=\n## |\Z)", re.S)
    new = pattern.sub(lambda _: section, old) if pattern.search(old) else f"{old}\n{section}"
    RESULTS.write_text(new)

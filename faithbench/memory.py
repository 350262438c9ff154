"""The memory that a piece of work takes, above what was there before it."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import torch

Value = TypeVar("Value")

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def with_peak(work: Callable[[], Value], device: torch.device) -> tuple[Value, int | None]:
    """Do a piece of work; return what it gives, and the bytes it took at most above the start.

    On cuda this is the allocator's count; elsewhere the resident set, which Linux alone lets
    a process watch: None on other systems.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        value = work()
        torch.cuda.synchronize(device)
        return value, int(torch.cuda.max_memory_allocated(device)) - before
    _give_back()
    if not _reset_peak():
        return work(), None
    before = _resident("VmRSS")
    value = work()
    return value, max(0, _resident("VmHWM") - before)


def _give_back() -> None:
    """Hand freed memory back to the system, or work would hide in what others left behind."""
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).malloc_trim(0)


def _reset_peak() -> bool:
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def _resident(field: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"/proc/self/status has no {field}")

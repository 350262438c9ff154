"""How long an explainer takes and how much memory, measured alone on a sample of examples."""

from __future__ import annotations

import ctypes
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch

from faithbench.core.types import Encoding, Target
from faithbench.data.windows import parts_of
from faithbench.explainers.protocol import Explainer
from faithbench.models.encoding import collate
from faithbench.models.session import Session
from faithbench.run.attribute import explain, seed_of
from faithbench.stats.summaries import bootstrap


@dataclass(frozen=True)
class Alone:
    """Seconds of each example of a sample, and the highest memory of all, in bytes."""

    seconds: tuple[float, ...]
    peak_bytes: int | None

    @property
    def median(self) -> float:
        """The median over the examples."""
        return statistics.median(self.seconds)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The percentile-bootstrap 95% interval of the median."""
        if len(self.seconds) < 2:
            return None
        seconds = np.array(self.seconds)
        low, high = bootstrap(len(seconds), lambda draws: np.median(seconds[draws], axis=1))
        return float(low), float(high)


def measure_alone(
    session: Session,
    explainer: Explainer,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    seed: int,
) -> Alone:
    """Explain examples one at a time, each from scratch: nothing that others made is reused."""
    calls = [
        partial(_timed, session, explainer, encoding, target, seed)
        for encoding, target in zip(encodings, targets, strict=True)
    ]
    calls[0]()  # first calls build copies and kernels
    with _frozen():
        measurements = [with_peak(call, session.model.device) for call in calls]
    peaks = [peak for _, peak in measurements if peak is not None]
    return Alone(tuple(seconds for seconds, _ in measurements), max(peaks, default=None))


def _timed(
    session: Session, explainer: Explainer, encoding: Encoding, target: Target, seed: int
) -> float:
    parts = parts_of(encoding)
    seeds = [seed_of(seed, encoding.example.id)] * len(parts)
    batch = collate(session.model, parts, [target] * len(parts), seeds, seed)
    session.clear()
    session.synchronise()
    start = time.perf_counter()
    explain(session, explainer, batch)
    session.synchronise()
    elapsed = time.perf_counter() - start
    session.drop_passes()
    return elapsed


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


def memory_in_use(device: torch.device) -> int | None:
    """Return the bytes that this process holds now on the device; None where that is unknown."""
    if device.type == "cuda":
        return int(torch.cuda.memory_allocated(device))
    return _resident("VmRSS") if _STATUS.exists() else None


@contextmanager
def _frozen() -> Iterator[None]:
    """Keep what is there now from being looked through again by each collection inside.

    One full collection takes as long as many explanations; those inside see new objects alone.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


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

"""How fast this machine's device is, and how much of that a run gets: for `doctor --benchmark`."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

import torch

from faithbench.core.machine import cpu_name
from faithbench.models.devices import synchronise
from faithbench.models.engine import Engine
from faithbench.models.flops import FlopsByLength, count_by_length, flops_of
from faithbench.models.host_waits import count_host_waits
from faithbench.models.model import Model
from faithbench.models.packs import Pack
from faithbench.models.session import PROBED, Session, rows_per_second

GEMM_SECONDS = 1.0
"""How long products are repeated: the quickest counts, so that a busy moment does not."""
PASSES = 4
"""Passes whose waits and operations are counted."""


@dataclass(frozen=True)
class DeviceBenchmark:
    """What was measured: rates per second in float32, waits of one call of the engine.

    `limit` is the part of the GEMM rate that rows reach, by the FLOPs that the engine spends on
    them: it leaves out what the classifier does not read.
    """

    device: str
    threads: int
    gemm_flops: float
    rows: float
    tokens: int
    budget: int
    limit: float
    host_waits: int
    operations: int

    def line(self) -> str:
        """Return all of it in one line, to paste into an issue."""
        waits = f"{self.host_waits} host wait{'s' * (self.host_waits != 1)}"
        return (
            f"faithbench {version('faithbench')}, torch {torch.__version__}; {self.device}, "
            f"{self.threads} thread{'s' * (self.threads != 1)}; "
            f"GEMM {self.gemm_flops / 1e9:,.0f} GFLOP/s; {self.rows:,.0f} rows/s of "
            f"{self.tokens} tokens at a budget of {self.budget}; {self.limit:.0%} of the limit; "
            f"{waits} in {PASSES} passes, {self.operations} operations a pass"
        )


def benchmark_device(model: Model) -> DeviceBenchmark:
    """Measure the device that a model is on, and the engine on it, in less than a minute."""
    session = Session(model)
    session.tune()
    engine, device = session.engine, model.device
    # Before and after, since another program may take the machine for a while.
    gemm = gemm_rate(device)
    rows = rows_per_second(engine, engine.budget, PASSES)
    gemm = max(gemm, gemm_rate(device))
    with count_host_waits() as waits:
        rows_per_second(engine, engine.budget, PASSES)
    tokens = min(PROBED, model.max_tokens)
    return DeviceBenchmark(
        device=describe_device(device),
        threads=torch.get_num_threads(),
        gemm_flops=gemm,
        rows=rows,
        tokens=tokens,
        budget=engine.budget,
        limit=rows * spent_flops(engine)(tokens) / gemm,
        # The rate is taken of the second of two calls.
        host_waits=waits.count // 2,
        operations=waits.operations // (2 * PASSES),
    )


def spent_flops(engine: Engine) -> FlopsByLength:
    """Return the FLOPs that an engine spends on a row, if it shares no token with another row."""
    # Layers that are packed for the CPU hide their products from the count.
    model, unpacked = engine.model, engine.differentiable
    if unpacked is None:
        return flops_of(model)

    def run(tokens: int) -> torch.Tensor:
        ids = torch.zeros(1, tokens, dtype=torch.long, device=model.device)
        return unpacked(Pack.even(ids, torch.zeros_like(ids)))

    return count_by_length(run, model.max_tokens, model.public_name)


def gemm_rate(device: torch.device, seconds: float = GEMM_SECONDS) -> float:
    """Return the FLOPs per second of the quickest product of two square float32 matrices."""
    size = 2048 if device.type == "cpu" else 8192
    square = torch.ones(size, size, device=device)

    def multiply() -> None:
        torch.mm(square, square)
        synchronise(device)

    multiply()
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, _timed(multiply))
    return 2 * size**3 / best


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def describe_device(device: torch.device) -> str:
    """Name the kind of device: a GPU's model, or a CPU's with the vectors that PyTorch uses."""
    if device.type == "cuda":
        return f"cuda ({torch.cuda.get_device_name(device)})"
    if device.type == "cpu":
        return f"cpu ({cpu_name()}, {torch.backends.cpu.get_cpu_capability()})"
    return f"{device.type} ({platform.machine()})"

"""What devices differ in: which one to take, which numbers it has, how much it takes at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Ints

HOST = torch.device("cpu")
WITHOUT_FLOAT64 = frozenset({"mps"})
"""Kinds of device that have no float64. GPUs whose float64 is slow keep it: that the CPU would be
quicker has not been measured."""


def choose_device(name: str) -> torch.device:
    """Turn auto, cpu, cuda or mps into a device that this machine has."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        return torch.device(next(device for device, ok in available.items() if ok))
    if name not in available:
        raise FaithbenchError(f"device {name!r} is not one of auto, {', '.join(available)}")
    if not available[name]:
        raise FaithbenchError(f"device {name!r} is not on this machine; use --device cpu")
    return torch.device(name)


def place_for(dtype: torch.dtype, device: torch.device) -> torch.device:
    """Return where numbers of a type are computed: the device, or the CPU if it has none."""
    return HOST if dtype == torch.float64 and device.type in WITHOUT_FLOAT64 else device


def forbid_tf32() -> None:
    """Compute float32 products in float32: TF32 keeps 10 bits of its 23.

    PyTorch allows it in convolutions unless told otherwise.
    """
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


def allows_tf32(device: torch.device) -> bool | None:
    """Return whether float32 products may lose bits to TF32; None where there is no such thing."""
    if device.type != "cuda":
        return None
    return torch.get_float32_matmul_precision() != "highest" or torch.backends.cudnn.allow_tf32


GAIN = 1.1
"""How much quicker twice the tokens must be to be worth it."""
MOST = 2**20
"""The largest token budget that is tried."""
FULL = 0.5
"""The share of the memory that a pass may take: explainers need the rest."""


def find_budget(rate: Callable[[int], float], memory_share: Callable[[], float], start: int) -> int:
    """Double a token budget until rows per second stop rising, or memory is half full.

    `rate` runs rows with a budget and returns rows per second; `memory_share` is then asked for
    the part of the memory that was taken.
    """
    best, rows_per_second = start, rate(start)
    while 2 * best <= MOST:
        try:
            more = rate(2 * best)
        except torch.OutOfMemoryError:
            break
        if more < GAIN * rows_per_second or memory_share() > FULL:
            break
        best, rows_per_second = 2 * best, more
    return best


def memory_share(device: torch.device) -> float:
    """Return the largest part of the device's memory that was taken so far; 0 if unknown."""
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        return torch.cuda.max_memory_reserved(device) / total
    if device.type == "mps":
        return torch.mps.driver_allocated_memory() / torch.mps.recommended_max_memory()
    return 0.0


def send(arrays: Sequence[Ints], device: torch.device) -> tuple[torch.Tensor, ...]:
    """Copy arrays of integers to a device in one piece, without waiting for the copy."""
    flat = torch.from_numpy(np.concatenate([array.ravel() for array in arrays]))
    if device.type == "cuda":
        # From pinned memory the copy runs while the host goes on.
        flat = flat.pin_memory()
    parts = flat.to(device, non_blocking=True).split([array.size for array in arrays])
    return tuple(part.view(array.shape) for part, array in zip(parts, arrays, strict=True))


def synchronise(device: torch.device) -> None:
    """Wait for the device: calls return before their work is done, and clocks lie."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()

"""Devices are chosen, spared what they lack, and given as much as they take quickest."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.devices import (
    MOST,
    allows_tf32,
    choose_device,
    find_budget,
    forbid_tf32,
    memory_share,
    place_for,
    send,
)
from faithbench.models.host_waits import count_host_waits

CPU, CUDA, MPS = torch.device("cpu"), torch.device("cuda"), torch.device("mps")


@pytest.mark.parametrize(
    ("cuda", "mps", "auto"), [(False, False, "cpu"), (False, True, "mps"), (True, True, "cuda")]
)
def test_choose_device(monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, auto: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == torch.device(auto)
    assert choose_device("cpu") == torch.device("cpu")
    for name, there in (("cuda", cuda), ("mps", mps)):
        if there:
            assert choose_device(name) == torch.device(name)
        else:
            with pytest.raises(FaithbenchError, match=f"'{name}' is not on this machine; use"):
                choose_device(name)
    with pytest.raises(FaithbenchError, match="'tpu' is not one of auto, cuda, mps, cpu"):
        choose_device("tpu")


def test_float64_is_computed_where_there_is_any() -> None:
    assert place_for(torch.float64, MPS) == CPU
    assert place_for(torch.float32, MPS) == MPS
    assert place_for(torch.float64, CUDA) == CUDA
    assert place_for(torch.float64, CPU) == CPU


def test_float32_means_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert allows_tf32(CUDA) is True
    forbid_tf32()
    assert allows_tf32(CUDA) is False
    assert allows_tf32(CPU) is None


@pytest.mark.parametrize(
    ("rates", "shares", "budget"),
    [
        ({2048: 100.0, 4096: 109.0}, [], 2048),
        ({2048: 100.0, 4096: 190.0, 8192: 300.0, 16384: 310.0}, [0.1, 0.2], 8192),
        ({2048: 100.0, 4096: 190.0, 8192: 380.0}, [0.3, 0.6], 4096),
        ({2048: 100.0, 4096: 190.0}, [0.3], 4096),  # no room for 8192
    ],
    ids=["no gain", "stops rising", "memory half full", "out of memory"],
)
def test_the_budget_doubles_while_that_pays(
    rates: dict[int, float], shares: list[float], budget: int
) -> None:
    def rate(tokens: int) -> float:
        if tokens not in rates:
            raise torch.OutOfMemoryError("no room")
        return rates[tokens]

    left = iter(shares)
    assert find_budget(rate, lambda: next(left), 2048) == budget
    assert list(left) == []


def test_the_budget_has_an_end() -> None:
    assert find_budget(float, lambda: 0.0, 2048) == MOST
    assert memory_share(CPU) == 0


def test_arrays_arrive_with_their_shapes_without_a_wait() -> None:
    with count_host_waits() as waits:
        a, b = send([np.arange(6).reshape(2, 3), np.array([9])], CPU)
    assert (a.tolist(), b.tolist()) == ([[0, 1, 2], [3, 4, 5]], [9])
    assert waits.count == 0, waits.places
    assert send([np.arange(3)], torch.device("meta"))[0].device.type == "meta"

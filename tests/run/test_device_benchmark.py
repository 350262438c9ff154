"""The benchmark of a device says what it measured, in one line."""

from __future__ import annotations

import re

import pytest
import torch

from faithbench.models.engine import Engine
from faithbench.models.flops import flops_of
from faithbench.run import device_benchmark
from faithbench.run.device_benchmark import (
    benchmark_device,
    describe_device,
    gemm_rate,
    spent_flops,
)


def test_a_line_to_paste(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_benchmark, "gemm_rate", lambda device: 5e9)
    model = tiny_model("bert", 2, torch.float32)
    measured = benchmark_device(model)
    assert (measured.budget, measured.tokens) == (2048, 32)
    assert measured.host_waits == 1, "one copy of logits per call, whatever the number of passes"
    assert 30 < measured.operations < 120
    assert measured.limit == pytest.approx(measured.rows * spent_flops(Engine(model))(32) / 5e9)
    number = r"[\d,]+"
    assert re.fullmatch(
        rf"faithbench \S+, torch \S+; cpu \(.+\), \d+ threads?; GEMM 5 GFLOP/s; {number} rows/s of "
        rf"32 tokens at a budget of 2048; {number}% of the limit; 1 host wait in 4 passes, "
        r"\d+ operations a pass",
        measured.line(),
    )


def test_the_engine_spends_less_than_the_network_and_counts_what_it_spends(tiny_model) -> None:
    """Two blocks, 32 wide; 48 between. The second block is computed for one token of the row."""
    model = tiny_model("bert", 2, torch.float32)
    tokens, width, wide = 32, 32, 48
    first = 2 * tokens * (4 * width**2 + 2 * width * wide) + 4 * tokens**2 * width
    # Query, key, value and output of one token, its weights on and means of all, by four heads.
    last = 2 * (4 * width**2 + 2 * width * wide) + 2 * 2 * 4 * tokens * width
    head = 2 * (width**2 + 2 * width)
    assert spent_flops(Engine(model))(tokens) == first + last + head
    assert spent_flops(Engine(model))(tokens) < flops_of(model)(tokens)
    gpt2 = tiny_model("gpt2", 2, torch.float32)
    assert spent_flops(Engine(gpt2))(tokens) == flops_of(gpt2)(tokens)


def test_the_gemm_rate_counts_two_flops_per_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_benchmark, "_timed", lambda work: 0.5)
    rate = gemm_rate(torch.device("meta"), seconds=0.001)
    assert rate == 2 * 8192**3 / 0.5


def test_devices_are_described_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    here = describe_device(torch.device("cpu"))
    assert here.startswith("cpu (")
    assert here.endswith(f", {torch.backends.cpu.get_cpu_capability()})")
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA L4")
    assert describe_device(torch.device("cuda")) == "cuda (NVIDIA L4)"

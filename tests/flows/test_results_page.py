"""benchmarks/RESULTS.md: every measured section says on which processor."""

from __future__ import annotations

import re

import torch

from faithbench.core.machine import cpu_name
from tests.support.benchmarks import load_benchmark
from tests.support.paths import ROOT


def test_the_machine_is_told_with_its_vectors() -> None:
    told = load_benchmark("tables").machine()
    assert f" threads, cpu ({cpu_name()}, {torch.backends.cpu.get_cpu_capability()}); torch" in told


def test_every_measured_section_names_its_processor() -> None:
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    machines = re.findall(r"^`[^`]+` \((20[^\n]*)\)$", text, re.M)
    assert len(machines) >= 10
    for machine in machines:
        assert re.search(r"threads, (cpu \([^()]+, [^()]+\)|CPU not recorded); torch", machine), (
            machine
        )

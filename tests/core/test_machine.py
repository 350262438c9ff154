"""The processor is told, the machine's own name never."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core import machine
from faithbench.core.machine import cpu_name


def test_the_processor_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the first line that has its model; where there is none, by the kind of machine."""
    lines = "processor\t: 0\nmodel name\t: Some CPU: 3 GHz\nmodel name\t: Other\n"
    monkeypatch.setattr(Path, "read_text", lambda _: lines)
    assert cpu_name() == "Some CPU: 3 GHz"
    monkeypatch.setattr(machine.platform, "machine", lambda: "riscv")
    monkeypatch.setattr(Path, "read_text", lambda _: "processor\t: 0\n")
    assert cpu_name() == "riscv"

    def fail(_: Path) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", fail)
    assert cpu_name() == "riscv"

"""Memory of a piece of work, against arrays of known size."""

from __future__ import annotations

import pytest
import torch

from faithbench import memory
from faithbench.memory import with_peak

CPU = torch.device("cpu")


@pytest.mark.parametrize("megabytes", [200, 50])
def test_the_peak_is_that_of_the_work_alone(megabytes: int) -> None:
    """In this order: the second must not hide in what the first gave back."""

    def work() -> float:
        return float(torch.ones(megabytes * 250_000).sum())

    value, peak = with_peak(work, CPU)
    assert value == megabytes * 250_000
    assert peak is not None and megabytes * 0.95e6 < peak < megabytes * 1.3e6 + 20e6


def test_no_count_where_the_system_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_RESET", memory._STATUS.parent / "no-such-file" / "x")
    assert with_peak(lambda: 3, CPU) == (3, None)

"""Chunks in this process: each computed when it is asked for, and not before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.models.session import Session
from faithbench.run.backends import choose_backend, serial
from faithbench.run.backends.processes import Processes
from faithbench.run.backends.serial import Serial
from tests.support.jobs import make_job


def test_chunks_are_computed_as_they_are_asked_for(
    tmp_path: Path, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    monkeypatch.setattr(serial, "compute_chunk", lambda *parts: computed.append(parts[2]))
    job = make_job(tmp_path, tiny_model())
    chunks: Any = ["first", "second", "third"]
    results = Serial().compute(Session(job.model), job, chunks, lambda *_: None)
    next(results)
    assert computed == ["first"]
    assert len(list(results)) == 2 and computed == chunks


def test_the_number_of_jobs_chooses_the_backend() -> None:
    assert choose_backend(None) == Serial(threads=None)
    assert choose_backend(1) == Serial(threads=1)
    assert choose_backend(3) == Processes(workers=3, threads=1)

"""Chunks in several processes: the same bytes as in one, and errors that say what happened."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.session import Session
from faithbench.run.backends import choose_backend, processes
from faithbench.run.backends.processes import Processes
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.jobs import content, make_job, quiet


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    return make_job(tmp_path, tiny_model())


def test_the_bytes_do_not_depend_on_the_number_of_jobs(job: Job, tmp_path: Path) -> None:
    written = {}
    for jobs in (1, 2, 3):
        results = tmp_path / f"jobs-{jobs}"
        run(replace(job, results=results), quiet, choose_backend(jobs))
        written[jobs] = content(results)
    assert len(written[1]) > 6
    assert written[2] == written[1]
    assert written[3] == written[1]


def test_the_caller_keeps_its_threads(job: Job) -> None:
    before = torch.get_num_threads()
    (first, *_) = run(job, quiet, choose_backend(2))
    assert first.record.environment.threads == 1
    assert torch.get_num_threads() == before


def test_a_run_killed_in_one_backend_continues_in_the_other(job: Job, tmp_path: Path) -> None:
    whole = replace(job, results=tmp_path / "whole")
    run(whole, quiet, choose_backend(1))

    def stop(what: str, done: int, _total: int) -> None:
        if what.startswith("explained") and done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="6 of 13 examples are kept"):
        run(job, stop, choose_backend(2))
    run(job, quiet, choose_backend(1))
    assert content(job.results) == content(whole.results)


def test_results_come_in_the_order_of_the_chunks(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    def slow_at_first(_session: Any, _job: Any, chunk: int, tell: Any) -> int:
        tell("starting", chunk)
        time.sleep(0.2 if chunk == 0 else 0)
        return chunk * 10

    monkeypatch.setattr(processes, "compute_chunk", slow_at_first)
    chunks: Any = list(range(7))
    told: list[tuple[str, int]] = []
    results = list(
        Processes(3).compute(Session(job.model), job, chunks, lambda *step: told.append(step))
    )
    assert results == [0, 10, 20, 30, 40, 50, 60]
    # The workers' steps arrive here, in whichever order they are made.
    assert sorted(told) == [("starting", chunk) for chunk in chunks]


def test_an_error_in_a_worker_is_raised_here(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise FaithbenchError("explainer 'x' failed on example 'e4'")

    monkeypatch.setattr(processes, "compute_chunk", failing)
    with pytest.raises(FaithbenchError, match="failed on example 'e4'") as caught:
        run(job, quiet, choose_backend(2))
    assert "in failing" in "".join(caught.value.__notes__), "the worker's traceback comes along"


def test_an_error_that_cannot_travel_comes_as_a_line(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LocalError(Exception):
        """Defined inside a function, so that no other process can unpickle it."""

    def failing(*_: Any) -> None:
        raise LocalError("too odd")

    monkeypatch.setattr(processes, "compute_chunk", failing)
    with pytest.raises(FaithbenchError, match="LocalError: too odd"):
        run(job, quiet, choose_backend(2))


def test_a_worker_that_dies_is_named(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "compute_chunk", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(FaithbenchError, match=r"a worker process ended .* fewer --jobs"):
        run(job, quiet, choose_backend(2))

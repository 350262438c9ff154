"""Chunks in several processes: the same bytes as in one, and errors that say what happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.attention import Attention
from faithbench.models.session import Session
from faithbench.run.backends import choose_backend, processes
from faithbench.run.backends.processes import Processes
from faithbench.run.chunk import Chunk, ChunkRows, compute_chunk
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
        if what.startswith("explained") and done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="4 of 13 examples are kept"):
        run(job, stop, choose_backend(2))
    run(job, quiet, choose_backend(1))
    assert content(job.results) == content(whole.results)


def test_results_come_in_the_order_of_the_chunks(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_at_first(_session: Any, _job: Any, chunk: Chunk, tell: Any) -> float:
        tell("starting", int(chunk.work))
        time.sleep(0.2 if chunk.work == 1 else 0)
        return chunk.work * 10

    monkeypatch.setattr(processes, "compute_chunk", slow_at_first)
    chunks = [Chunk((), frozenset(), {}, work) for work in range(1, 8)]
    told: list[tuple[str, int]] = []
    results = list(
        Processes(3).compute(Session(job.model), job, chunks, lambda *step: told.append(step))
    )
    assert results == [10, 20, 30, 40, 50, 60, 70]
    # The workers' steps arrive here, in whichever order they are made.
    assert sorted(told) == [("starting", chunk.work) for chunk in chunks]


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
    expected = (
        r"a worker process was ended by SIGKILL at example 'e\d+', the last of 3 "
        r"workers lost there.* fewer --jobs"
    )
    with pytest.raises(FaithbenchError, match=expected):
        run(job, quiet, choose_backend(2))


def test_an_explainer_without_memory_is_a_worker_lost(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy_once(*_: Any) -> Any:
        if os.getpid() != driver and not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            torch.empty(1 << 50, dtype=torch.uint8)
        return attention(*_)

    driver = os.getpid()
    whole = replace(job, results=tmp_path / "whole")
    run(whole, quiet, choose_backend(1))
    attention = Attention.__call__
    monkeypatch.setattr(Attention, "__call__", greedy_once)
    run(job, quiet, Processes(2))
    assert (tmp_path / "tried").exists()
    assert content(job.results) == content(whole.results)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["killed", "hung", "memory", "torch memory"])
def test_a_lost_worker_is_replaced_and_its_chunk_done_again(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    whole = replace(job, results=tmp_path / "whole")
    run(whole, quiet, choose_backend(1))

    def failing_once(session: Any, job: Any, chunk: Chunk, tell: Any) -> ChunkRows:
        # One worker that hangs is enough to wait for.
        name = "chunk" if fault == "hung" else chunk.encodings[0].example.id
        try:
            (tmp_path / f"tried-{name}").touch(exist_ok=False)
        except FileExistsError:
            return compute_chunk(session, job, chunk, tell)
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "memory":
            raise MemoryError
        if fault == "torch memory":
            torch.empty(1 << 50, dtype=torch.uint8)
        time.sleep(60)
        raise AssertionError("a hung worker is ended")

    monkeypatch.setattr(processes, "compute_chunk", failing_once)
    run(job, quiet, Processes(2, timeout=1.5 if fault == "hung" else 60))
    assert len(list(tmp_path.glob("tried-*"))) == (1 if fault == "hung" else 5)
    assert content(job.results) == content(whole.results)


def test_little_work_is_done_in_this_process(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "compute_chunk", lambda *_: os.getpid())
    few: Any = [Chunk((), frozenset(), {}, work=1e9)] * 2
    many: Any = [Chunk((), frozenset(), {}, work=2e11)] * 2
    backend = Processes(2, least_work=2e11)
    compute = partial(backend.compute, Session(job.model), job, tell=quiet)
    assert list(compute(chunks=few)) == [os.getpid()] * 2
    assert os.getpid() not in list(compute(chunks=many))


@pytest.mark.slow
def test_workers_end_with_the_run_that_was_killed(tmp_path: Path) -> None:
    """They share the locks of its rows files, which the next run needs."""
    script = tmp_path / "script.py"
    script.write_text(KILLED)
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    workers = [int(process.stdout.readline()) for _ in range(2)]
    process.kill()
    process.wait()
    process.stdout.close()
    until = time.monotonic() + 20
    while any(is_running(worker) for worker in workers) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(is_running(worker) for worker in workers)


KILLED = """
import os, time
from types import SimpleNamespace
import torch
from faithbench.run.backends import processes

def hang(*_):
    os.write(1, f"{os.getpid()}\\n".encode())
    time.sleep(100)

processes.compute_chunk = hang
session = SimpleNamespace(model=SimpleNamespace(device=torch.device("cpu")))
chunks = [SimpleNamespace(work=1.0)] * 3
list(processes.Processes(2).compute(session, None, chunks, print))
"""


def is_running(process: int) -> bool:
    """Return whether a process is there, and not only waiting for its end to be read."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"

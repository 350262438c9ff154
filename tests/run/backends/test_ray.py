"""Chunks on a Ray cluster: the same bytes as in one process, lost workers included."""

from __future__ import annotations

import os
import signal
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.run.backends import choose_backend
from faithbench.run.backends import ray as module
from faithbench.run.backends.ray import Ray
from faithbench.run.backends.serial import Serial
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.jobs import content, quiet

ray = pytest.importorskip("ray")


def test_settings_are_read_from_the_option() -> None:
    asked = choose_backend(3, backend="ray:address=ray://head:10001,gpus=0.25,connect=2")
    assert asked == Ray(3, "ray://head:10001", 0.25, connect=2.0)
    assert os.environ.get("RAY_USAGE_STATS_ENABLED", "0") == "0"


def test_a_cluster_that_does_not_answer_is_one_line(stored_job: Job) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    backend = Ray(address=f"ray://127.0.0.1:{port}", connect=1.0)
    with pytest.raises(
        FaithbenchError, match=rf"no Ray cluster answers at ray://.*:{port} within 1"
    ):
        run(stored_job, quiet, backend)


def test_an_error_of_the_connection_is_raised_by_who_waits() -> None:
    def failing() -> None:
        raise ConnectionError("no such cluster")

    with pytest.raises(ConnectionError, match="no such cluster"):
        module._within(failing, 5.0)
    with pytest.raises(TimeoutError, match="no answer within 0 s"):
        module._within(lambda: time.sleep(1), 0.0)
    module._within(lambda: None, 5.0)


@pytest.mark.slow
# Ray leaves sockets and log files to the collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_killed_worker_changes_no_byte(stored_job: Job, tmp_path: Path) -> None:
    whole = replace(stored_job, results=tmp_path / "whole")
    run(whole, quiet, Serial(threads=1))
    killed: list[int] = []

    def kill_one(what: str, done: int, _total: int) -> None:
        if what.startswith("explained") and 2 <= done < 12 and not killed:
            killed.append(worker_process())
            os.kill(killed[0], signal.SIGKILL)

    told: list[Any] = []
    run(stored_job, lambda *step: (told.append(step), kill_one(*step)), Ray(jobs=2))
    assert len(killed) == 1
    assert ("loading on 2 Ray workers", 0, 12) in told
    assert content(stored_job.results) == content(whole.results)
    assert not ray.is_initialized(), "a cluster that was started for a run ends with it"


def worker_process() -> int:
    """Return the process of a worker of ours, a grandchild of this one."""
    from psutil import Process

    workers = [
        child.pid
        for child in Process().children(recursive=True)
        if "ray::Worker" in " ".join(child.cmdline())
    ]
    return workers[0]


def test_a_server_that_says_nothing_is_given_up_in_time(stored_job: Job) -> None:
    """It accepts connections, as Ray's own waiting for 30 s does not tell.

    The last test of this file: Ray goes on waiting in a thread, and starts no cluster meanwhile.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(FaithbenchError, match=rf"{address}: no answer within 0\.5 s; check"):
            run(stored_job, quiet, Ray(address=address, connect=0.5))
    assert time.monotonic() - start < 10

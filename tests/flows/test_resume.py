"""A run that was interrupted or killed ends in the same bytes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.records.rows_writer import RowsFile
from faithbench.run import finish as finishing
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.jobs import content, make_job, quiet, watched_sessions

BACKWARDS = 2  # per example: of lrp-mask, its own pass and the shared one


class StoppedError(Exception):
    """Stands for whatever ends a run early."""


def done_after(chunks: int) -> int:
    """Return how many examples so many chunks have: three each, but for the first with one."""
    return 3 * chunks - 2


def stop_after(chunks: int) -> Callable[[str, int, int], None]:
    """Stop a run once so many chunks are done."""

    def report(what: str, done: int, total: int) -> None:
        if what.startswith("explained") and done == done_after(chunks):
            raise StoppedError

    return report


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    return make_job(tmp_path, tiny_model())


def backwards_of(job: Job, progress: Callable[[str, int, int], None] = quiet) -> int:
    """Run a job, and return how many rows went backwards through its network."""
    with watched_sessions() as sessions:
        run(job, progress)
    return sum(session.meter.total.backwards for session in sessions)


@pytest.fixture
def expected(job: Job, tmp_path: Path) -> tuple[dict[str, Any], int]:
    """What an uninterrupted run leaves, and its backward rows."""
    whole = replace(job, results=tmp_path / "whole")
    backwards = backwards_of(whole)
    return content(whole.results), backwards


@pytest.mark.parametrize("chunks", [1, 2, 4, 5])
def test_an_interrupted_run_continues(
    job: Job, expected: tuple[dict[str, Any], int], chunks: int
) -> None:
    with pytest.raises(StoppedError):
        run(job, stop_after(chunks))
    assert list(job.results.rglob("*.json")) == []
    partial = list(job.results.rglob(".partial/*.rows.jsonl"))
    done = done_after(chunks)
    assert [len(path.read_text().splitlines()) for path in partial] == [1 + done] * 3
    saved = expected[1] - backwards_of(job)
    # Finished examples are not explained again; with all of them done, nothing is.
    assert saved == (expected[1] if chunks == 5 else BACKWARDS * done)
    assert content(job.results) == expected[0]


def test_damaged_rows_are_computed_again_and_said_so(
    job: Job, expected: tuple[dict[str, Any], int]
) -> None:
    with pytest.raises(StoppedError):
        run(job, stop_after(2))
    path = min(job.results.rglob(".partial/*.rows.jsonl"))
    path.write_bytes(path.read_bytes().replace(b'"probability":0.', b'"probability":1.', 1))
    said: list[str] = []
    run(job, lambda what, *_: said.append(what))
    assert "1 damaged rows of an earlier run are computed again" in said
    assert content(job.results) == expected[0]


def test_a_fresh_run_keeps_nothing(job: Job, expected: tuple[dict[str, Any], int]) -> None:
    with pytest.raises(StoppedError):
        run(job, stop_after(2))
    done: list[int] = []
    run(job, lambda what, count, _: done.append(count) if what == "explained" else None, fresh=True)
    assert done[0] == 0, "no example was done when it started"
    assert content(job.results) == expected[0]


def test_several_interruptions_in_a_row(job: Job, expected: tuple[dict[str, Any], int]) -> None:
    for chunks in (1, 2, 3, 4):
        with pytest.raises(StoppedError):
            run(job, stop_after(chunks))
    run(job, quiet)
    assert content(job.results) == expected[0]


def test_interrupted_between_two_explainers_of_a_chunk(
    job: Job, expected: tuple[dict[str, Any], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    append, calls = RowsFile.append, []

    def failing(self: RowsFile, rows: Any) -> None:
        calls.append(1)
        if len(calls) == 5:  # the second explainer's rows of the second chunk
            raise StoppedError
        append(self, rows)

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(RowsFile, "append", failing)
        run(job, quiet)
    lengths = [len(p.read_bytes().splitlines()) for p in job.results.rglob("*.rows.jsonl")]
    assert sorted(lengths) == [2, 2, 5]
    run(job, quiet)
    assert content(job.results) == expected[0]


def test_interrupted_while_finishing(
    job: Job, expected: tuple[dict[str, Any], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    write = finishing.write

    def failing(record: Any, path: Path) -> None:
        if record.explainer.name == "attention":
            raise StoppedError
        write(record, path)

    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        patch.setattr(finishing, "write", failing)
        run(job, quiet)
    assert [p.name[:6] for p in job.results.rglob("*.json")] == ["random"]
    run(job, quiet)
    assert content(job.results) == expected[0]


def test_finished_results_are_computed_anew_and_replaced(
    job: Job, expected: tuple[dict[str, Any], int]
) -> None:
    outcomes = run(job, quiet)
    for outcome in outcomes:
        outcome.path.write_text("old")
        (outcome.path.parent / outcome.record.rows.file).write_text("old")
    assert backwards_of(job) == expected[1]
    assert content(job.results) == expected[0]


def command(results: Path) -> list[str]:
    words = "run --explainer random,attention --task sst2 --source bundled --limit 24 --batch 4"
    words += " --metrics aopc,lodds,iou_lexical --seeds 1 --no-human"
    return [sys.executable, "-m", "faithbench.cli", *words.split(), "--results", str(results)]


def start(results: Path) -> subprocess.Popen[bytes]:
    # One thread each: two of them run side by side on two cores.
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(results.parent),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.Popen(
        command(results),
        env=environment,
        cwd=results.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def lines_in(results: Path) -> int:
    found = [p.read_bytes().count(b"\n") for p in results.rglob(".partial/random-*.rows.jsonl")]
    return max(found, default=0)


def kill_at(results: Path, lines: int) -> int:
    """Start the command, kill it once its rows file has so many lines; return what it had."""
    process = start(results)
    try:
        while lines_in(results) < lines and process.poll() is None:
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    assert code == -signal.SIGKILL
    assert list(results.rglob("*.json")) == []
    return lines_in(results)


def finish(results: Path) -> dict[str, Any]:
    assert start(results).wait() == 0
    return content(results)


def test_a_process_killed_three_times_ends_in_the_same_bytes(tmp_path: Path) -> None:
    points = [1, 9, 17]  # right after the header, after two chunks, after four
    results = tmp_path / "killed"
    with ThreadPoolExecutor(1) as pool:
        whole = pool.submit(finish, tmp_path / "whole")
        lines = [kill_at(results, point) for point in points]
        assert all(point <= found < 25 for point, found in zip(points, lines, strict=True))
        assert finish(results) == whole.result()
    (record,) = results.rglob("random-*.json")
    assert read(record).task.n == 24 and len(content(results)) == 7
    assert len(read_rows(record.with_name(read(record).rows.file))) == 24

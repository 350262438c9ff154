"""Tasks of an array, as processes of this machine: the same bytes as in one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.run.backends import choose_backend, slurm
from faithbench.run.backends.serial import Serial
from faithbench.run.backends.slurm import GROUP_WORK, Slurm, group_chunks
from faithbench.run.chunk import Chunk
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.jobs import content, quiet

pytest.importorskip("submitit")


def chunk_of(work: float) -> Chunk:
    return Chunk((), frozenset(), {}, work)


def test_chunks_are_grouped_by_work_and_keep_their_order() -> None:
    works = [GROUP_WORK * share for share in (0.4, 0.4, 0.4, 2.0, 0.1, 0.9)]
    groups = group_chunks([chunk_of(work) for work in works])
    assert [[chunk.work / GROUP_WORK for chunk in group] for group in groups] == [
        pytest.approx([0.4, 0.4]),
        pytest.approx([0.4]),
        pytest.approx([2.0]),
        pytest.approx([0.1, 0.9]),
    ]
    assert len(group_chunks([chunk_of(GROUP_WORK)] * 5000)) <= 1000


@pytest.mark.slow
def test_the_bytes_are_those_of_one_process(
    stored_job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "GROUP_WORK", 0.0)
    monkeypatch.setattr(slurm, "MOST_TASKS", 4)
    whole = replace(stored_job, results=tmp_path / "whole")
    run(whole, quiet, Serial(threads=1))
    backend = choose_backend(
        2, backend=f"slurm:cluster=local,folder={tmp_path / 'logs'},minutes=5,poll=0.1"
    )
    assert isinstance(backend, Slurm) and backend.jobs == 2
    told: list[str] = []
    run(stored_job, lambda what, *_: told.append(what), backend)
    assert any(what.startswith("waiting for task 2 of ") for what in told)
    assert content(stored_job.results) == content(whole.results)
    assert not list((tmp_path / "logs").glob("*.parcel")), "what travelled is removed"


def test_a_machine_without_slurm_is_one_line(stored_job: Job, tmp_path: Path) -> None:
    backend = Slurm(folder=str(tmp_path / "logs"))
    with pytest.raises(FaithbenchError, match=r"cannot submit to cluster 'slurm': .*use --shard"):
        run(stored_job, quiet, backend)

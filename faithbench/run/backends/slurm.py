"""Chunks as tasks of a Slurm array, by way of submitit.

Each task loads the weights once and computes a group of chunks. A task that is preempted or times
out is put back into the queue; one that fails is submitted again.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable, replace_file
from faithbench.models.session import Session
from faithbench.run.backends.attempts import Attempts
from faithbench.run.backends.parcel import pack, unpack
from faithbench.run.chunk import CHUNK_WORK, Chunk, ChunkRows, Tell, compute_chunk
from faithbench.run.job import Job

GROUP_WORK = 12 * CHUNK_WORK
"""Approximate multiply-adds of a task: two minutes of one core, against seconds of loading."""
MOST_TASKS = 1000
"""Tasks of an array at most: Slurm's own usual limit."""


@dataclass(frozen=True)
class Slurm:
    """Compute chunks in an array of which at most `jobs` tasks run at a time.

    `folder` keeps logs and what travels, and must be seen by all nodes. `cluster` is slurm, or
    local for processes of this machine. A task has one CPU, `memory` GB, `gpus` GPUs, `minutes` of
    time and is requeued at most `requeues` times.
    """

    jobs: int = 16
    cluster: str = "slurm"
    folder: str = ".faithbench-slurm"
    partition: str = ""
    minutes: int = 60
    memory: int = 8
    gpus: int = 0
    requeues: int = 3
    poll: float = 5.0

    @property
    def threads(self) -> int | None:
        """Return the number of torch threads in each process."""
        return 1

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk, in the order of the chunks, as soon as they are there."""
        submitit = _import_submitit()
        import cloudpickle

        folder = Path(self.folder).resolve()
        check_writable(folder, "--backend slurm:folder=...")
        parcel = folder / f"job-{job.cells[0].key[:16]}.parcel"
        replace_file(parcel, pack(session, job, chunks, cloudpickle))
        groups = group_chunks(chunks)
        bare = [[replace(chunk, bounds={}) for chunk in group] for group in groups]
        executor = self._executor(submitit, folder)
        attempts = Attempts([group[0] for group in groups])
        tasks = executor.map_array(Task(), [str(parcel)] * len(bare), bare)
        try:
            for number in range(len(bare)):
                tell(f"waiting for task {number + 1} of {len(bare)} ({tasks[number].job_id})", 0)
                while True:
                    rows = _result(submitit, tasks[number], self.poll)
                    if not isinstance(rows, str):
                        break
                    attempts.count_lost(number, rows, "more memory or minutes")
                    tasks[number] = executor.submit(Task(), str(parcel), bare[number])
                yield from rows
        finally:
            for task in tasks:
                if not task.done():
                    task.cancel(check=False)
            parcel.unlink(missing_ok=True)

    def _executor(self, submitit: Any, folder: Path) -> Any:
        try:
            executor = submitit.AutoExecutor(
                folder=folder / "%j", cluster=self.cluster, slurm_max_num_timeout=self.requeues
            )
        except (RuntimeError, ValueError) as error:
            raise FaithbenchError(
                f"cannot submit to cluster {self.cluster!r}: {error}; run where sbatch is, or use "
                "--shard"
            ) from error
        executor.update_parameters(
            name="faithbench",
            timeout_min=self.minutes,
            mem_gb=self.memory,
            cpus_per_task=1,
            gpus_per_node=self.gpus,
            slurm_array_parallelism=self.jobs,
            slurm_additional_parameters={"requeue": True},
        )
        if self.partition:
            executor.update_parameters(slurm_partition=self.partition)
        return executor


class Task:
    """Runs on a node: load the job, compute a group of chunks; start over when requeued."""

    def __call__(self, parcel: str, chunks: Sequence[Chunk]) -> list[ChunkRows]:
        """Return the rows of the chunks."""
        import cloudpickle

        content = cloudpickle.loads(Path(parcel).read_bytes())
        session, job = unpack(content)
        return [
            compute_chunk(session, job, replace(chunk, bounds=content.bounds), lambda *_: None)
            for chunk in chunks
        ]

    def checkpoint(self, parcel: str, chunks: Sequence[Chunk]) -> Any:
        """Ask submitit to put the task back into the queue, as it was."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(Task(), parcel, chunks)


def group_chunks(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    """Group neighbours into tasks of about two minutes, and at most as many as an array may have.

    Which chunks share a task changes no bit: each is computed by itself.
    """
    most = max(GROUP_WORK, sum(chunk.work for chunk in chunks) / MOST_TASKS * 2)
    groups: list[list[Chunk]] = []
    room = 0.0
    for chunk in chunks:
        if not groups or chunk.work > room:
            groups.append([])
            room = most
        groups[-1].append(chunk)
        room -= chunk.work
    return groups


def _result(submitit: Any, task: Any, poll: float) -> list[ChunkRows] | str:
    """Wait for a task; return its rows, or in what way it was lost."""
    while not task.done():
        time.sleep(poll)
    try:
        rows: list[ChunkRows] = task.result()
    except submitit.core.utils.FailedJobError as error:
        raise FaithbenchError(
            f"task {task.job_id} failed: {str(error).strip().splitlines()[-1]}; its log is "
            f"{task.paths.stderr}"
        ) from error
    except submitit.core.utils.UncompletedJobError:
        return f"task {task.job_id} ended without a result ({task.state})"
    return rows


def _import_submitit() -> Any:
    try:
        import submitit
    except ImportError as error:
        raise FaithbenchError(
            "--backend slurm needs the package submitit: pip install 'faithbench[slurm]'"
        ) from error
    return submitit

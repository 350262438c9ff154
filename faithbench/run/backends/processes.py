"""Chunks spread over processes of this machine, each with one thread.

Workers are forked from the warm parent, so that model, packed weights, data and explainers are
shared memory and a worker starts at once, as torch's own data loaders do. Whole chunks go to
workers, not explainers: what the explainers of a chunk share stays shared. A worker that dies or
falls silent is replaced, and its chunk is done again.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from faithbench.core.errors import FaithbenchError, is_out_of_memory
from faithbench.core.parallel import default_processes
from faithbench.models.session import Session
from faithbench.run.backends.attempts import Attempts
from faithbench.run.chunk import Chunk, ChunkRows, Tell, compute_chunk
from faithbench.run.job import Job


@dataclass(frozen=True)
class Processes:
    """Compute chunks in `jobs` processes; 0 stands for one per core.

    A worker that has told nothing for `timeout` seconds is replaced. Work of less than
    `least_work` multiply-adds is done in this process.
    """

    jobs: int = 0
    timeout: float = 1800.0
    least_work: float = 0.0

    @property
    def threads(self) -> int | None:
        """Return the number of torch threads in each process."""
        return 1

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk, in the order of the chunks, as soon as they are there."""
        count = min(self.jobs or default_processes(), len(chunks))
        if self.least_work and (count < 2 or sum(c.work for c in chunks) < self.least_work):
            for chunk in chunks:
                yield compute_chunk(session, job, chunk, tell)
            return
        _check_possible(session)
        pool = _Pool(session, job, chunks, count, self.timeout)
        done: dict[int, ChunkRows] = {}
        following = 0
        try:
            for _ in range(count):
                pool.start_worker()
            while following < len(chunks):
                for index, answer in pool.receive():
                    if isinstance(answer, _Step):
                        tell(answer.what, answer.done)
                    else:
                        done[index] = answer
                while following in done:
                    yield done.pop(following)
                    following += 1
        finally:
            pool.close()


@dataclass(frozen=True)
class _Step:
    """What a worker tells of the chunk it is at."""

    what: str
    done: int


@dataclass(frozen=True)
class _OutOfMemory:
    """The last words of a worker that had no memory for its chunk."""


@dataclass
class _Worker:
    """A process, the line to it, the chunk it is at, and when it was last heard of."""

    process: BaseProcess
    line: Connection
    index: int
    heard: float


class _Pool:
    """The workers of a run, the chunks that wait for one, and the attempts at each chunk."""

    def __init__(
        self, session: Session, job: Job, chunks: Sequence[Chunk], count: int, timeout: float
    ) -> None:
        self._session, self._job, self._chunks = session, job, chunks
        self._timeout = timeout
        self._waiting = deque(range(len(chunks)))
        self._attempts = Attempts(chunks)
        self._workers: list[_Worker] = []

    def start_worker(self) -> None:
        """Fork a worker and give it the next chunk."""
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        # A worker closes the parent's ends, or it would never see that the parent is gone.
        inherited = [ours, *(worker.line for worker in self._workers)]
        process = context.Process(
            target=_work,
            args=(self._session, self._job, self._chunks, theirs, inherited, os.getpid()),
            daemon=True,
        )
        process.start()
        theirs.close()
        worker = _Worker(process, ours, -1, time.monotonic())
        self._workers.append(worker)
        self._give(worker)

    def receive(self) -> Generator[tuple[int, ChunkRows | _Step], None, None]:
        """Wait for workers; yield what they tell and compute, and replace those that are lost."""
        oldest = min(worker.heard for worker in self._workers)
        ready = wait(
            [worker.line for worker in self._workers],
            max(0.0, oldest + self._timeout - time.monotonic()),
        )
        for worker in [one for one in self._workers if one.line in ready]:
            worker.heard = time.monotonic()
            try:
                index, answer = worker.line.recv()
            except (EOFError, OSError):
                worker.process.join()
                self._replace(worker, _manner(worker.process.exitcode))
                continue
            if isinstance(answer, _OutOfMemory):
                self._replace(worker, "ran out of memory")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                if not isinstance(answer, _Step):
                    self._give(worker)
                yield index, answer
        silent = time.monotonic() - self._timeout
        for worker in [one for one in self._workers if one.heard <= silent]:
            self._replace(worker, f"told nothing for {self._timeout:g} s")

    def close(self) -> None:
        """End all workers; one may be in the middle of a chunk that is no longer needed."""
        for worker in self._workers:
            worker.line.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def _give(self, worker: _Worker) -> None:
        """Send the next chunk, if there is one; a worker without is let go."""
        if not self._waiting:
            self._dismiss(worker)
            return
        worker.index = self._waiting.popleft()
        # A worker that died this moment is noticed when it is listened to.
        try:
            worker.line.send(worker.index)
        except OSError:
            return

    def _replace(self, worker: _Worker, manner: str) -> None:
        """End a lost worker, put its chunk first in the queue, and start another worker."""
        self._dismiss(worker)
        self._attempts.count_lost(worker.index, f"a worker process {manner}", "fewer --jobs")
        self._waiting.appendleft(worker.index)
        self.start_worker()

    def _dismiss(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.line.close()
        worker.process.kill()
        worker.process.join()


def _check_possible(session: Session) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise FaithbenchError("--jobs needs a system that can fork processes; use --jobs 1 here")
    if session.model.device.type != "cpu":
        raise FaithbenchError(
            f"--jobs spreads work over CPU cores, and the model is on {session.model.device}; "
            "leave it out, or use --device cpu"
        )


def _manner(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"ended with code {exit_code}"


def _work(
    session: Session,
    job: Job,
    chunks: Sequence[Chunk],
    line: Connection,
    inherited: Sequence[Connection],
    parent: int,
) -> None:
    """Compute the chunks whose numbers arrive, until the other end of the line is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    _die_with(parent)
    for connection in inherited:
        connection.close()
    torch.set_num_threads(1)
    try:
        while True:
            index = line.recv()
            tell = partial(_send_step, line, index)
            line.send((index, _answer(session, job, chunks[index], tell)))
    except (EOFError, OSError):
        return


def _die_with(parent: int) -> None:
    """Let the system end this worker with its parent, whose locks on rows files it shares."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # 1 is PR_SET_PDEATHSIG
    if os.getppid() != parent:  # it died before the system was asked
        os._exit(1)


def _send_step(line: Connection, index: int, what: str, done: int) -> None:
    line.send((index, _Step(what, done)))


def _answer(
    session: Session, job: Job, chunk: Chunk, tell: Tell
) -> ChunkRows | Exception | _OutOfMemory:
    try:
        return compute_chunk(session, job, chunk, tell)
    except Exception as error:  # raised again by the parent
        if is_out_of_memory(error):
            return _OutOfMemory()
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an exception class that cannot travel
            return FaithbenchError(f"{type(error).__name__}: {error}")
        return error

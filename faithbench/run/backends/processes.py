"""Chunks spread over processes of this machine, each with a session and one thread of its own.

Workers are forked, so that model, data and explainers are shared memory and a worker starts at
once, as torch's own data loaders do. Whole chunks go to workers, not explainers: what the
explainers of a chunk share stays shared.
"""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.session import Session
from faithbench.run.chunk import Chunk, ChunkRows, Tell, compute_chunk
from faithbench.run.job import Job


@dataclass(frozen=True)
class Processes:
    """Compute chunks in `workers` processes."""

    workers: int
    threads: int | None = 1

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk, in the order of the chunks, as soon as they are there."""
        _check_possible(session)
        waiting = deque(range(len(chunks)))
        done: dict[int, ChunkRows] = {}
        following = 0
        workers = [_start(session, job, chunks) for _ in range(min(self.workers, len(chunks)))]
        try:
            for _, connection in workers:
                connection.send(waiting.popleft())
            while following < len(chunks):
                for ready in wait([connection for _, connection in workers]):
                    connection = next(line for _, line in workers if line is ready)
                    index, answer = _receive(connection)
                    if isinstance(answer, _Step):
                        tell(answer.what, answer.done)
                        continue
                    done[index] = answer
                    if waiting:
                        connection.send(waiting.popleft())
                while following in done:
                    yield done.pop(following)
                    following += 1
        finally:
            # A worker may be in the middle of a chunk whose result is no longer needed.
            for process, connection in workers:
                connection.close()
                process.terminate()
            for process, _ in workers:
                process.join()


@dataclass(frozen=True)
class _Step:
    """What a worker tells of the chunk it is at."""

    what: str
    done: int


def _check_possible(session: Session) -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        raise FaithbenchError("--jobs needs a system that can fork processes; leave it out here")
    if session.model.device.type != "cpu":
        raise FaithbenchError(
            f"--jobs spreads work over CPU cores, and the model is on {session.model.device}; "
            "leave it out, or use --device cpu"
        )


def _start(session: Session, job: Job, chunks: Sequence[Chunk]) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(session, job, chunks, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _receive(connection: Connection) -> tuple[int, ChunkRows | _Step]:
    try:
        index, answer = connection.recv()
    except (EOFError, OSError) as error:
        raise FaithbenchError(
            "a worker process ended before its chunk was done, perhaps for lack of memory; "
            "run again with fewer --jobs"
        ) from error
    if isinstance(answer, BaseException):
        raise answer
    return index, answer


def _work(session: Session, job: Job, chunks: Sequence[Chunk], line: Connection) -> None:
    """Compute the chunks whose numbers arrive, until the other end of the line is closed.

    A killed parent closes its end too. Forked later, a worker holds the parent's ends of the
    lines of earlier ones; the last one notices first, and the others follow.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    torch.set_num_threads(1)
    worker_session = Session(session.model, job.budget)
    try:
        while True:
            index = line.recv()
            tell = partial(_send_step, line, index)
            line.send((index, _answer(worker_session, job, chunks[index], tell)))
    except (EOFError, OSError):
        return


def _send_step(line: Connection, index: int, what: str, done: int) -> None:
    line.send((index, _Step(what, done)))


def _answer(session: Session, job: Job, chunk: Chunk, tell: Tell) -> ChunkRows | Exception:
    try:
        return compute_chunk(session, job, chunk, tell)
    except Exception as error:  # raised again by the parent
        error.add_note(traceback.format_exc())
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # an exception class that cannot travel
            return FaithbenchError(f"{type(error).__name__}: {error}")
        return error

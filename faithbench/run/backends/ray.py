"""Chunks on a Ray cluster: an actor per worker, which loads the weights once.

A node that is lost takes its actors with it: others are started in their place, and the chunks
that were being computed there are computed again.
"""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Thread
from typing import Any

from faithbench.core.errors import FaithbenchError, is_out_of_memory
from faithbench.models.session import Session
from faithbench.run.backends.attempts import Attempts
from faithbench.run.backends.parcel import pack, unpack
from faithbench.run.chunk import Chunk, ChunkRows, Tell, compute_chunk
from faithbench.run.job import Job


@dataclass(frozen=True)
class Ray:
    """Compute chunks by `jobs` actors; 0 stands for as many as the cluster has room for.

    `address` is `ray://host:port`, `host:port` or `auto`; without it a cluster is started on this
    machine and stopped afterwards. Each actor takes one CPU and `gpus` GPUs, which may be a
    fraction. A chunk that takes more than `timeout` seconds counts as lost, and so does a cluster
    that gives no actor for as long; `connect` is the time-out of the connection.
    """

    jobs: int = 0
    address: str = ""
    gpus: float = 0.0
    timeout: float = 1800.0
    connect: float = 20.0

    @property
    def threads(self) -> int | None:
        """Return the number of torch threads in each process."""
        return 1

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk, in the order of the chunks, as soon as they are there."""
        ray = _import_ray()
        with _connected(ray, self):
            parcel = ray.put(pack(session, job, chunks, ray.cloudpickle))
            pool = _Actors(ray, self, parcel, chunks)
            done: dict[int, ChunkRows] = {}
            following = 0
            try:
                tell(f"loading on {pool.count} Ray workers", 0)
                while following < len(chunks):
                    done |= pool.receive()
                    while following in done:
                        yield done.pop(following)
                        following += 1
            finally:
                pool.close()


class Worker:
    """Runs on a node of the cluster: a job with its model, loaded once."""

    def load(self, parcel: bytes) -> None:
        """Load the job's model; not in __init__, whose errors reach the driver only as text."""
        from ray import cloudpickle

        self._session, self._job = unpack(cloudpickle.loads(parcel))
        self._bounds = cloudpickle.loads(parcel).bounds

    def compute(self, chunk: Chunk) -> ChunkRows:
        """Compute one chunk, which comes without the bounds that every chunk shares."""
        whole = replace(chunk, bounds=self._bounds)
        return compute_chunk(self._session, self._job, whole, lambda *_: None)


@dataclass
class _Task:
    """What an actor was asked for: to load (no index) or to compute a chunk."""

    actor: Any
    index: int | None
    deadline: float


class _Actors:
    """The actors of a run, what each is doing, and the chunks that wait."""

    def __init__(self, ray: Any, settings: Ray, parcel: Any, chunks: Sequence[Chunk]) -> None:
        self._ray, self._settings, self._parcel = ray, settings, parcel
        self._chunks = [replace(chunk, bounds={}) for chunk in chunks]
        self._attempts = Attempts(chunks)
        self._tasks: dict[Any, _Task] = {}
        self._losses = 0
        self.count = min(settings.jobs or _room(ray, settings.gpus), len(chunks))
        self._waiting = deque(range(len(chunks)))
        self._class = ray.remote(num_cpus=1, num_gpus=settings.gpus, max_restarts=0)(Worker)
        for _ in range(self.count):
            self._start()

    def receive(self) -> dict[int, ChunkRows]:
        """Wait for actors; return what they have computed, and replace those that are lost."""
        computed: dict[int, ChunkRows] = {}
        ready, _ = self._ray.wait(list(self._tasks), num_returns=1, timeout=1.0)
        for ref in ready:
            task = self._tasks.pop(ref)
            try:
                rows = self._ray.get(ref)
            except self._ray.exceptions.RayTaskError as error:
                cause = error.cause
                if not isinstance(cause, Exception) or not is_out_of_memory(cause):
                    raise error.as_instanceof_cause() from None
                self._replace(task, "ran out of memory")
            except self._ray.exceptions.RayError as error:
                self._replace(task, f"was lost ({type(error).__name__})")
            else:
                if task.index is not None:
                    computed[task.index] = rows
                self._give(task.actor)
        self._end_overdue()
        return computed

    def close(self) -> None:
        """End all actors; one may be in the middle of a chunk that is no longer needed."""
        for task in self._tasks.values():
            self._ray.kill(task.actor)

    def _start(self) -> None:
        actor = self._class.remote()
        self._ask(actor, None, actor.load.remote(self._parcel))

    def _give(self, actor: Any) -> None:
        if self._waiting:
            index = self._waiting.popleft()
            self._ask(actor, index, actor.compute.remote(self._chunks[index]))
        else:
            self._ray.kill(actor)

    def _ask(self, actor: Any, index: int | None, ref: Any) -> None:
        self._tasks[ref] = _Task(actor, index, time.monotonic() + self._settings.timeout)

    def _replace(self, task: _Task, manner: str) -> None:
        """Start another actor, having put the chunk of the lost one first in the queue."""
        self._ray.kill(task.actor)
        self._losses += 1
        if task.index is not None:
            self._attempts.count_lost(task.index, f"a Ray worker {manner}", "fewer --jobs")
            self._waiting.appendleft(task.index)
        elif self._losses > 3 * self.count + 10:
            raise FaithbenchError(
                f"{self._losses} Ray workers were lost as they loaded the model, the last one "
                f"{manner}; look at the cluster, or run again with fewer --jobs"
            )
        self._start()

    def _end_overdue(self) -> None:
        """Replace actors that hang; one that waits for a place only matters if all others do."""
        now = time.monotonic()
        computing = any(task.index is not None for task in self._tasks.values())
        for ref, task in list(self._tasks.items()):
            if now <= task.deadline:
                continue
            if task.index is not None:
                del self._tasks[ref]
                self._replace(task, f"took more than {self._settings.timeout:g} s")
            elif not computing:
                raise FaithbenchError(
                    f"the Ray cluster started no worker in {self._settings.timeout:g} s; it needs "
                    f"1 CPU and {self._settings.gpus:g} GPUs free for each"
                )


def _room(ray: Any, gpus: float) -> int:
    """Return how many workers the cluster has room for."""
    resources = ray.cluster_resources()
    count = int(resources.get("CPU", 1))
    if gpus > 0:
        count = min(count, int(resources.get("GPU", 0) / gpus))
    if count < 1:
        raise FaithbenchError(
            f"the Ray cluster has no node with 1 CPU and {gpus:g} GPUs; lower gpus, or add nodes"
        )
    return count


def _import_ray() -> Any:
    # Before the import: Ray reads both when it is loaded.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
        from ray import cloudpickle, exceptions  # noqa: F401
    except ImportError as error:
        raise FaithbenchError(
            "--backend ray needs the package ray: pip install 'faithbench[ray]'"
        ) from error
    return ray


@contextmanager
def _connected(ray: Any, settings: Ray) -> Iterator[None]:
    """Connect to the cluster, or start one here; leave alone a connection that is there."""
    if ray.is_initialized():
        yield
        return
    _check_reachable(settings.address, settings.connect)
    options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if settings.address:
        start = partial(ray.init, address=settings.address, **options)
    else:
        local = {"num_cpus": settings.jobs or None, "include_dashboard": False}
        start = partial(ray.init, **local, **options)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if settings.address:
                _within(start, settings.connect)
            else:
                start()
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        where = settings.address or "of this machine"
        raise FaithbenchError(
            f"cannot connect to the Ray cluster {where}: {error}; check address and, if the "
            "cluster asks for one, the token in RAY_AUTH_TOKEN"
        ) from error
    try:
        yield
    finally:
        ray.shutdown()


def _within(start: Callable[[], object], seconds: float) -> None:
    """Call a function that may hang in C++, where no signal reaches it; give up after a time."""
    outcome: Future[object] = Future()

    def call() -> None:
        try:
            outcome.set_result(start())
        except BaseException as error:  # raised again by the thread that waits
            outcome.set_exception(error)

    # Not a pool's thread, for which the interpreter would wait at its end.
    Thread(target=call, daemon=True).start()
    try:
        outcome.result(seconds)
    except TimeoutError as error:
        raise TimeoutError(str(error) or f"no answer within {seconds:g} s") from error


def _check_reachable(address: str, seconds: float) -> None:
    """Refuse an address that does not answer: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:  # auto, local or none
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=seconds).close()
    except (OSError, ValueError, OverflowError) as error:
        raise FaithbenchError(
            f"no Ray cluster answers at {address} within {seconds:g} s ({error}); check "
            "--backend ray:address=..., or start it with `ray start --head`"
        ) from error

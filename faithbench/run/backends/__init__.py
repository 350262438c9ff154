"""Where the chunks of a run are computed: in this process, in several, or on a cluster.

A backend maps the one pure function of a run, `compute_chunk`, over chunks. It is a frozen
dataclass whose fields are its settings, all with defaults, `jobs` among them. Adding one takes a
file here and a line in `BACKENDS`; an installed package brings its own as an entry point of the
group `faithbench.backends`. This file does not import torch.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.parallel import default_processes
from faithbench.core.plugins import installed
from faithbench.core.spec import parse_explainers

if TYPE_CHECKING:
    from faithbench.models.session import Session
    from faithbench.run.chunk import Chunk, ChunkRows, Tell
    from faithbench.run.job import Job

GROUP = "faithbench.backends"
DEFAULT = "processes"
BACKENDS = {
    "processes": "Processes",
    "ray": "Ray",
    "slurm": "Slurm",
}
"""The class of each backend of this folder, by the name of its module."""

WORTH_FORKING = 2e11
"""Approximate multiply-adds, three seconds of one core, below which one process is as quick."""


class Backend(Protocol):
    """Computes chunks. `threads` is the number of torch threads of a run; None leaves it."""

    @property
    def threads(self) -> int | None:
        """Return the number of torch threads in each process."""
        ...

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk, in the order of the chunks; tell their steps meanwhile."""
        ...


def choose_backend(jobs: int | None = None, device: str = "cpu", backend: str = DEFAULT) -> Backend:
    """Return the backend for `--jobs` and `--backend name[:key=value,...]`.

    By default there is a process for each core if the model is on the CPU. Every process has one
    thread, the only one included, so that the results have the same bytes whatever their number
    is. On another device, one process drives it with torch's own threads.
    """
    from faithbench.run.backends.processes import Processes
    from faithbench.run.backends.serial import Serial

    if backend != DEFAULT:
        return _configured(backend, jobs)
    count = jobs or default_jobs(device)
    if count is None:
        return Serial(threads=None)
    if count == 1:
        return Serial(threads=1)
    return Processes(count, least_work=WORTH_FORKING if jobs is None else 0.0)


def default_jobs(device: str) -> int | None:
    """Return the number of processes without `--jobs`: one per core; None for another device."""
    if device == "auto":
        from faithbench.models.devices import choose_device

        device = choose_device(device).type
    return default_processes() if device.startswith("cpu") else None


def _configured(spec: str, jobs: int | None) -> Backend:
    """Build the backend that is asked for by name, of this folder or of an installed package."""
    from faithbench.explainers.selection import configure

    entries = parse_explainers(spec, noun="backend")
    if len(entries) != 1 or not entries[0][0]:
        raise FaithbenchError(
            f"--backend {spec!r} should be one backend, such as {DEFAULT} or name:key=value"
        )
    ((name, settings),) = entries
    backend: Any = configure(name, _class_of(name), settings)
    if jobs is not None and "jobs" not in settings:
        backend = replace(backend, jobs=jobs)
    chosen: Backend = backend
    return chosen


def _class_of(name: str) -> type[Any]:
    if name in BACKENDS:
        built_in: type[Any] = getattr(import_module(f"{__name__}.{name}"), BACKENDS[name])
        return built_in
    plugins = {plugin.name: plugin for plugin in installed(GROUP)}
    if name not in plugins:
        raise unknown("backend", name, {*BACKENDS, *plugins})
    cls: type[Any] = plugins[name].load()
    if not (isinstance(cls, type) and is_dataclass(cls) and hasattr(cls, "compute")):
        raise FaithbenchError(
            f"plugin {name!r} of {plugins[name].origin} is not a backend: it must be a frozen "
            "dataclass with a method compute"
        )
    return cls

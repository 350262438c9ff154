"""Where the chunks of a run are computed: in this process, or spread over several.

A backend maps the one pure function of a run, `compute_chunk`, over chunks. Adding one takes a
file here and a line in `choose_backend`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from faithbench.models.session import Session
from faithbench.run.chunk import Chunk, ChunkRows, Tell
from faithbench.run.job import Job


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


def choose_backend(jobs: int | None) -> Backend:
    """Return the backend for `--jobs`: without it one process that uses torch's own threads.

    With it every process has one thread, the only one included, so that the results have the
    same bytes whatever the number is.
    """
    from faithbench.run.backends.processes import Processes
    from faithbench.run.backends.serial import Serial

    if jobs is None:
        return Serial(threads=None)
    return Serial(threads=1) if jobs == 1 else Processes(jobs)

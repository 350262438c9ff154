"""All chunks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from faithbench.models.session import Session
from faithbench.run.chunk import Chunk, ChunkRows, Tell, compute_chunk
from faithbench.run.job import Job


@dataclass(frozen=True)
class Serial:
    """Compute chunks in this process."""

    threads: int | None = None

    def compute(
        self, session: Session, job: Job, chunks: Sequence[Chunk], tell: Tell
    ) -> Generator[ChunkRows, None, None]:
        """Yield the rows of each chunk."""
        for chunk in chunks:
            yield compute_chunk(session, job, chunk, tell)

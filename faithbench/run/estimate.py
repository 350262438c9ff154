"""How long a run will take, from the work that it is, and from what it has done so far."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faithbench.core.parallel import default_processes
from faithbench.metrics.cost import wants_timing
from faithbench.run.backends import Backend

if TYPE_CHECKING:
    from faithbench.core.types import Encoding
    from faithbench.run.chunk import Chunk
    from faithbench.run.job import Job


@dataclass
class Estimate:
    """The work of a run that is to do, that is done, and when all of it will be.

    Work is weighed as chunks are cut: long texts come first, so that a count of examples would
    promise too late an end.
    """

    total: float
    done: float = 0.0
    start: float = field(default_factory=time.monotonic)
    end: float | None = None

    def add(self, work: float) -> None:
        """Count a piece of work as done, and expect the rest to go as fast as all so far."""
        self.done += work
        self.end = self.start + (time.monotonic() - self.start) * self.total / self.done

    def __str__(self) -> str:
        """Return how long the rest takes as words to append; empty while nothing is known."""
        if self.end is None or self.done >= self.total:
            return ""
        return f", {in_words(self.end - time.monotonic())} left"


def work_alone(job: Job, encodings: Sequence[Encoding], costs: Sequence[float]) -> float:
    """Return the multiply-adds of timing each explainer by itself, after the rows, if wanted."""
    from faithbench.run.chunk import weights_per_token
    from faithbench.run.job import sample_by_length

    if not wants_timing(job.metrics):
        return 0.0
    tokens = sum(len(encoding.ids) for encoding in sample_by_length(encodings))
    return 2 * sum(costs) * tokens * weights_per_token(job.model)


def expected(
    backend: Backend, chunks: Sequence[Chunk], alone: float, rate: float
) -> tuple[float, int]:
    """Return the seconds and the number of processes that chunks take.

    `alone` is work that one process does afterwards; `rate` is multiply-adds per second of one.
    """
    work = sum(chunk.work for chunk in chunks)
    asked = getattr(backend, "jobs", 1) or default_processes()  # 0 stands for all
    workers = min(asked, len(chunks)) if work >= getattr(backend, "least_work", 0.0) else 1
    return (work / workers + alone) / rate, workers


def in_words(seconds: float) -> str:
    """Return a duration as roughly as it is known: about 40 s, about 3 min, about 2.5 h."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 95:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 95 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"

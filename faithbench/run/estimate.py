"""How long a run will still take, from the work that it has done so far."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Estimate:
    """The work of a run that is to do, that is done, and when all of it will be.

    Work is weighed as chunks are cut: short texts come first, so that a count of examples would
    promise too early an end.
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


def in_words(seconds: float) -> str:
    """Return a duration as roughly as it is known: about 40 s, about 3 min, about 2.5 h."""
    if seconds < 10:
        return "a few seconds"
    if seconds < 95:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 95 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h"

"""How often each chunk of a run was tried, and when it is time to give up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from faithbench.core.errors import FaithbenchError
from faithbench.run.chunk import Chunk

MOST = 3
"""Number of workers that a chunk may lose before the run stops."""


class Attempts:
    """Counts the workers that were lost at each chunk."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._lost: Counter[int] = Counter()

    def count_lost(self, index: int, what: str, advice: str) -> None:
        """Count a worker lost at a chunk; raise if it is one too many.

        `what` says who was lost and how, `advice` what to run with next time.
        """
        self._lost[index] += 1
        if self._lost[index] < MOST:
            return
        raise FaithbenchError(
            f"{what} at {_named(self._chunks[index])}, the last of {MOST} workers lost "
            f"there, perhaps for lack of memory; run again with {advice}"
        )


def _named(chunk: Chunk) -> str:
    """Name a chunk by its first and last example."""
    ids = [encoding.example.id for encoding in chunk.encodings]
    return f"example {ids[0]!r}" if len(ids) == 1 else f"examples {ids[0]!r} to {ids[-1]!r}"

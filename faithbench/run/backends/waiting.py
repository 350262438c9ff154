"""The chunks of a run that wait for a worker, and which of them comes next."""

from __future__ import annotations

from collections.abc import Sequence

from faithbench.run.chunk import Chunk


class Waiting:
    """Hands out chunks in their order, but a large one in time for workers to end together."""

    def __init__(self, chunks: Sequence[Chunk], workers: int) -> None:
        self._works = [chunk.work for chunk in chunks]
        self._workers = workers
        self._indices = list(range(len(chunks)))

    def take(self) -> int | None:
        """Return the index of the next chunk; None if there is none left.

        It is the first that waits, so that results can be kept as they come. But the largest goes
        first if it is all that one worker would get: left to the end, the others would be idle.
        """
        if not self._indices:
            return None
        largest = max(self._indices, key=lambda index: (self._works[index], -index))
        left = sum(self._works[index] for index in self._indices)
        alone = self._works[largest] * self._workers >= left
        chosen = largest if alone else self._indices[0]
        self._indices.remove(chosen)
        return chosen

    def put_back(self, index: int) -> None:
        """Let a chunk whose worker was lost be the next."""
        self._indices.insert(0, index)

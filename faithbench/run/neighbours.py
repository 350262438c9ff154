"""Who is near whom among a run's examples: found when asked for, and kept for the next run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from faithbench.core.errors import unknown
from faithbench.core.types import Progress, Target
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.metrics.neighbours import (
    Likeness,
    NeighbourKey,
    Neighbours,
    document,
    kept_neighbours,
    lexical_neighbours,
    semantic_neighbours,
)
from faithbench.models.files.weights import BASE_NAME
from faithbench.models.sentence_encoder import embed, encoder_sha256


@dataclass
class Nearest:
    """Finds the nearest examples with the same predicted class, by likeness.

    All answers to questions count as one class.
    """

    data: Dataset
    folder: Path
    targets: Sequence[Target]
    encoder: str | None
    device: str
    progress: Progress
    _known: dict[Likeness, Neighbours] = field(default_factory=dict)

    def __call__(self, likeness: Likeness) -> Neighbours:
        """Return, for each example, the indices of its neighbours."""
        if likeness not in get_args(Likeness):  # a plugin's metric may ask for anything
            raise unknown("likeness of neighbours", likeness, get_args(Likeness))
        if likeness not in self._known:
            self._known[likeness] = self._find(likeness)
        return self._known[likeness]

    @property
    def encoder_used(self) -> str | None:
        """The sentence encoder's name, if it was needed, without any folder of this machine."""
        if "semantic" not in self._known:
            return None
        name = self.encoder or BASE_NAME
        return Path(name).name if Path(name).is_dir() else name

    def _find(self, likeness: Likeness) -> Neighbours:
        texts = [document(example) for example in self.data.examples]
        task_kind = KINDS[self.data.task.kind]
        classes = [task_kind.neighbour_class(target) for target in self.targets]
        key = NeighbourKey(
            data=self.data.sha256,
            ids=tuple(example.id for example in self.data.examples),
            classes=tuple(classes),
            kind="semantic" if likeness == "semantic" else "lexical",
            encoder=encoder_sha256(self.encoder) if likeness == "semantic" else "",
            released=likeness == "lexical-mean",
        )

        def compute() -> Neighbours:
            if likeness == "semantic":
                vectors = embed(
                    texts, encoder=self.encoder, device=self.device, progress=self.progress
                )
                return semantic_neighbours(vectors, classes)
            return lexical_neighbours(texts, classes, released=key.released)

        return kept_neighbours(self.folder / ".neighbours", key, compute)

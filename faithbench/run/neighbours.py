"""Who is near whom among a run's examples: found when asked for, and kept for the next run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faithbench.core.types import Progress, Target
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.metrics.neighbours import (
    NeighbourKey,
    Neighbours,
    document,
    kept_neighbours,
    lexical_neighbours,
    semantic_neighbours,
)
from faithbench.models.sentence_encoder import embed, encoder_sha256
from faithbench.models.weights import BASE_NAME


@dataclass
class Nearest:
    """Finds the nearest examples with the same predicted class, by kind.

    Kinds are semantic, lexical, and lexical-mean, which is what the code of Situ et al. (2021)
    does. All answers to questions count as one class.
    """

    data: Dataset
    folder: Path
    targets: Sequence[Target]
    encoder: str | None
    device: str
    progress: Progress
    _found: dict[str, Neighbours] = field(default_factory=dict)

    def __call__(self, kind: str) -> Neighbours:
        """Return, for each example, the places of its neighbours."""
        if kind not in self._found:
            self._found[kind] = self._find(kind)
        return self._found[kind]

    @property
    def encoder_used(self) -> str | None:
        """The sentence encoder's name, if it was needed, without any folder of this machine."""
        if "semantic" not in self._found:
            return None
        name = self.encoder or BASE_NAME
        return Path(name).name if Path(name).is_dir() else name

    def _find(self, kind: str) -> Neighbours:
        texts = [document(example) for example in self.data.examples]
        task_kind = KINDS[self.data.task.kind]
        classes = [task_kind.neighbour_class(target) for target in self.targets]
        facts = NeighbourKey(
            data=self.data.sha256,
            ids=tuple(example.id for example in self.data.examples),
            classes=tuple(classes),
            kind="semantic" if kind == "semantic" else "lexical",
            encoder=encoder_sha256(self.encoder) if kind == "semantic" else "",
            released=kind == "lexical-mean",
        )

        def compute() -> Neighbours:
            if kind == "semantic":
                vectors = embed(
                    texts, encoder=self.encoder, device=self.device, progress=self.progress
                )
                return semantic_neighbours(vectors, classes)
            return lexical_neighbours(texts, classes, released=facts.released)

        return kept_neighbours(self.folder / ".neighbours", facts, compute)

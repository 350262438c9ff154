"""Precomputed scores in place of an explainer: they are measured as all others are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.rounding import significant
from faithbench.core.types import Batch
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import seed_of

Stored = Mapping[tuple[str, int], tuple[float, ...]]


@dataclass(frozen=True, eq=False)
class Replay:
    """An explainer that returns stored scores, by example id and seed.

    Scores are rounded as rows keep them, before anything is measured: a check that has the rows
    alone then measures the same. `digests` are those of the files the scores come from; `seconds`
    is how long the process that made them ran, if one did.
    """

    replayed: ClassVar[bool] = True

    stored: Stored
    stochastic: bool
    digests: Mapping[str, str]
    seconds: float | None = None

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the stored scores at the tokens that may be erased, and 0 elsewhere.

        The start and the end of an answer are explained separately and added: the stored scores
        are those of both, so the end gets none.
        """
        scores = np.zeros(tuple(batch.ids.shape))
        if batch.output != "end_logits":
            for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
                indices = np.flatnonzero(encoding.erasable)
                scores[row, indices] = self.stored[encoding.example.id, seed]
        return torch.from_numpy(scores)

    def assets(self, model: Model) -> Mapping[str, str]:
        """Return the digests of the files that the scores depend on."""
        return self.digests


def replay(
    scores: Mapping[str, Sequence[Sequence[float]]],
    first_seed: int,
    digests: Mapping[str, str],
    seconds: float | None = None,
) -> Replay:
    """Make an explainer of each example's scores, one list per seed from `first_seed` on."""
    stored = {
        (name, seed_of(first_seed + number, name)): tuple(significant(s, 7) for s in under_seed)
        for name, lists in scores.items()
        for number, under_seed in enumerate(lists)
    }
    several = any(len(lists) > 1 for lists in scores.values())
    return Replay(stored, several, digests, seconds)

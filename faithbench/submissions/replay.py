"""Scores that were made elsewhere, in the place of an explainer: measured as all others are."""

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
    """Return the scores that an example has under a seed.

    Scores are rounded as rows keep them, before anything is measured: so whoever has the rows
    can measure the same again. `digests` are those of the files they come from; `seconds` is
    how long the process that made them took, if one did.
    """

    replayed: ClassVar[bool] = True

    stored: Stored
    stochastic: bool
    digests: Mapping[str, str]
    seconds: float | None = None

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the stored scores at the tokens that may be erased, and 0 elsewhere.

        An answer is explained in two parts, which are added: the first one has it all.
        """
        scores = np.zeros(tuple(batch.ids.shape))
        if batch.output != "end_logits":
            for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
                places = np.flatnonzero(encoding.erasable)
                scores[row, places] = self.stored[encoding.example.id, seed]
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
    """Keep each example's scores, one list per seed, for a run to ask for."""
    stored = {
        (name, seed_of(first_seed + number, name)): tuple(significant(s, 7) for s in own)
        for name, lists in scores.items()
        for number, own in enumerate(lists)
    }
    several = any(len(lists) > 1 for lists in scores.values())
    return Replay(stored, several, digests, seconds)

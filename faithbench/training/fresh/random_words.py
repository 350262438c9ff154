"""The control of FRESH: words drawn at random."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.types import Batch
from faithbench.explainers.selection import Selected
from faithbench.models.session import Session


@dataclass(frozen=True)
class RandomWords:
    """Score each word with a random number, on the first of its tokens.

    Unlike `random`, whose scores are of tokens: summed, they would prefer words of many pieces.
    """

    stochastic: ClassVar[bool] = True
    reads_model: ClassVar[bool] = False

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return a number between 0 and 1 at the first token of each word, and 0 elsewhere."""
        scores = np.zeros(tuple(batch.ids.shape))
        for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
            words, first = np.unique(encoding.words, return_index=True)
            drawn = np.random.default_rng(seed).random(len(words))
            scores[row, first] = np.where(words >= 0, drawn, 0)
        return torch.from_numpy(scores)


def random_words() -> Selected:
    """Return the control of FRESH: as many words, any of them."""
    return Selected("random-words", RandomWords(), version=version("faithbench"))

"""Controls: what an explainer must beat to have said anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from faithbench.models import Model
from faithbench.types import Batch


@dataclass(frozen=True)
class Random:
    """Score each token with a random number.

    Drawn per example from its own seed, so that batches and their order change nothing.
    """

    stochastic: ClassVar[bool] = True

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return uniform scores."""
        scores = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
            draw = torch.Generator().manual_seed(seed)
            scores[row, : len(encoding.ids)] = torch.rand(
                len(encoding.ids), generator=draw, dtype=torch.float64
            )
        return scores


@dataclass(frozen=True)
class FirstTokens:
    """Score tokens by their position, the first one highest.

    What an explainer must beat where important words tend to stand early.
    """

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return scores that fall from 1 towards 0 along the text."""
        lengths = batch.attention.sum(dim=1, keepdim=True)
        places = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        return 1 - places / lengths

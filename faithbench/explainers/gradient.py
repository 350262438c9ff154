"""Explainers that read the gradient at the word embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from faithbench.capture import capture
from faithbench.models import Model
from faithbench.types import Batch


@dataclass(frozen=True)
class InputXGradient:
    """Multiply each embedding by its gradient.

    Shrikumar et al. 2017; the gradient of the target's logit, summed over the embedding's
    width. captum's InputXGradient gives the same values but needs a pass of its own.
    """

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the signed products."""
        seen = capture(model, batch)
        return (seen.embeddings * seen.embedding_gradients).sum(dim=-1)

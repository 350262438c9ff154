"""The explainer built on DeepLIFT multipliers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from faithbench.deep_lift import DeepLift, run_deep_lift
from faithbench.models import Model
from faithbench.paths import baseline_embeddings, embed
from faithbench.sharing import shared
from faithbench.types import Batch


@dataclass(frozen=True)
class DeepShap:
    """Split the logit's difference to a baseline by DeepLIFT multipliers.

    Lundberg & Lee 2017, Section 4.2, with one baseline, which is DeepLIFT (Shrikumar et al.
    2017, Eq. 1-3, rescale rule) with products split as Shapley values; captum's does not see
    functional operations, so cannot split attention. `baseline` is what stands at erasable
    tokens: mask, pad, or zero vectors; special tokens and positions stay, and score 0. Scores
    are signed and sum to the difference of the target's logit.
    """

    baseline: str = "mask"

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the contribution of each token."""
        return deep_lift(model, batch, self.baseline).scores

    def gaps(self, model: Model, batch: Batch, scores: torch.Tensor) -> torch.Tensor:
        """Return how far each example's scores miss the difference of the logit."""
        return deep_lift(model, batch, self.baseline).gap


def deep_lift(model: Model, batch: Batch, baseline: str = "mask") -> DeepLift:
    """Return the pass of a batch; its `gap` says how exactly the scores sum to the difference."""

    def make() -> DeepLift:
        return _deep_lift(model, batch, baseline)

    return shared(model, batch, f"deep-lift {baseline}", make, forwards=2, backwards=2)


def _deep_lift(model: Model, batch: Batch, baseline: str) -> DeepLift:
    inputs = embed(model, batch.ids)
    erased = baseline_embeddings(model, batch, baseline)
    baselines = torch.where(batch.erasable[..., None], erased, inputs)
    # Half precision has too few digits for differences; float32 ranks as float64 does.
    network = model.eager(torch.promote_types(model.dtype, torch.float32))
    return run_deep_lift(network, batch, inputs, baselines)

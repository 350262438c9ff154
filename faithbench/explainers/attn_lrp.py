"""The explainer built on the AttnLRP pass."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from faithbench.attn_lrp import run_attn_lrp
from faithbench.models import Model
from faithbench.types import Batch


@dataclass(frozen=True)
class AttnLrp:
    """Propagate relevance through attention and softmax.

    AttnLRP, Achtibat et al. 2024, Prop. 3.1-3.4 with the epsilon rule (Eq. 8) for linear
    layers, in the authors' gradient form: word embedding times modified gradient of the
    target's logit, summed over the width; signed. Biases and the softmax keep a share, so
    the scores do not sum to the logit.
    """

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the relevance of each word embedding."""
        scores = run_attn_lrp(model.network, batch)
        model.meter.charge(forwards=len(batch.ids), backwards=len(batch.ids))
        return scores

"""Explainers that see attention as a network of pipes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from faithbench.capture import capture
from faithbench.errors import FaithbenchError
from faithbench.flow import max_flows
from faithbench.models import Model
from faithbench.types import Batch, Encoding


@dataclass(frozen=True)
class AttentionFlow:
    """Find the maximum flow through attention to each token.

    Attention flow, Abnar & Zuidema 2020: nodes are tokens at every level, edges have the
    capacities of attention, heads averaged, with the identity added for the residual and rows
    normalised; a token's score is the maximum flow to it from the token that the classifier
    reads. The released code then divides each row by its sum, which changes no ranking. One
    maximum flow per token is slow, so inputs of more than `max_tokens` are refused.
    """

    max_tokens: int = 128

    def check(self, model: Model, encodings: Sequence[Encoding]) -> None:
        """Refuse inputs that are too long; a run asks this before any work."""
        self._check_length(max(len(encoding.ids) for encoding in encodings))

    def _check_length(self, longest: int) -> None:
        if longest > self.max_tokens:
            raise FaithbenchError(
                f"attention flow was asked for an input of {longest} tokens and takes at most "
                f"{self.max_tokens}; set max_tokens higher, or choose rollout"
            )

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the maximum flow to each token; padding gets 0."""
        lengths = [int(n) for n in batch.attention.sum(dim=1)]
        self._check_length(max(lengths))
        seen = capture(model, batch)
        scores = torch.zeros_like(seen.attentions[0][:, 0, 0])
        for row, size in enumerate(lengths):
            heads = torch.stack([a[row, :, :size, :size] for a in seen.attentions])
            layers = heads.double().mean(dim=1).cpu().numpy() + np.eye(size)
            layers = layers / layers.sum(axis=-1, keepdims=True)
            flows = max_flows(list(layers), int(seen.position[row]))
            scores[row, :size] = torch.from_numpy(flows).to(scores)
        return scores

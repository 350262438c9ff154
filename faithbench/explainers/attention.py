"""Explainers that read attention matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from faithbench.capture import capture
from faithbench.models import Model
from faithbench.types import Batch


@dataclass(frozen=True)
class Attention:
    """Read the last block's attention, heads averaged.

    RawAtt of Abnar & Zuidema 2020: the row of the token that the classifier reads.
    """

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the attention of the read position."""
        seen = capture(model, batch)
        return read_row(seen.attentions[-1].mean(dim=1), seen.position)


@dataclass(frozen=True)
class Rollout:
    """Multiply attention through all blocks.

    Abnar & Zuidema 2020: heads averaged, the identity added for the residual, rows
    normalised, and the product read at the token that the classifier reads.
    """

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return the rolled-out attention of the read position."""
        seen = capture(model, batch)
        joint = roll_out([a.mean(dim=1) for a in seen.attentions], normalise=True)
        return read_row(joint, seen.position)


def roll_out(layers: Sequence[torch.Tensor], *, normalise: bool) -> torch.Tensor:
    """Return the product of (M + I) over blocks, last block leftmost, rows normalised if asked."""
    size = layers[0].shape[-1]
    identity = torch.eye(size, dtype=layers[0].dtype, device=layers[0].device)
    joint = identity.expand_as(layers[0])
    for layer in layers:
        step = layer + identity
        if normalise:
            step = step / step.sum(dim=-1, keepdim=True)
        joint = step @ joint
    return joint


def read_row(matrix: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
    """Return each example's row of [examples, tokens, tokens] at its read position."""
    return matrix[torch.arange(len(matrix), device=matrix.device), position]

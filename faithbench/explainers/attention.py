"""Explainers that read attention matrices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import (
    Capture,
    capture,
    capture_attention,
    capture_square,
    capture_square_attention,
)
from faithbench.models.session import Session


@dataclass(frozen=True)
class Attention:
    """Read the last block's attention, heads averaged.

    RawAtt of Abnar & Zuidema 2020: the row of the token that the classifier reads.
    """

    revision: ClassVar[int] = 2  # 2: charged with a forward pass alone.

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the attention of the read position."""
        seen = capture_attention(session, batch)
        return read_row(seen.attentions[-1].mean(dim=1), seen.position)


@dataclass(frozen=True)
class Rollout:
    """Multiply attention through all blocks.

    Abnar & Zuidema 2020: heads averaged, the identity added for the residual, rows
    normalised, and the product read at the token that the classifier reads.
    """

    revision: ClassVar[int] = 2  # 2: charged with a forward pass alone.

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the rolled-out attention of the read position."""
        seen = capture_square_attention(session, batch)
        joint = roll_out([a.mean(dim=1) for a in seen.attentions], normalise=True)
        return read_row(joint, seen.position)


@dataclass(frozen=True)
class AttentionXGradient:
    """Multiply the last block's attention by its gradient.

    Alpha times grad-alpha (Serrano & Smith 2019; SaLoss): heads averaged, the row of the
    token that the classifier reads, signed.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return attention times gradient of the read position."""
        seen = capture(session, batch)
        product = seen.attentions[-1] * seen.attention_gradients[-1]
        return read_row(product.mean(dim=1), seen.position)


@dataclass(frozen=True)
class Gae:
    """Accumulate attention weighted by its positive gradient over all blocks.

    Generic Attention Explainability, Chefer et al. 2021a, Eq. 5-6: R starts as the identity
    and grows by max(0, gradient * attention), heads averaged, times R; nothing is normalised.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the accumulated relevance of the read position."""
        seen = capture_square(session, batch)
        layers = [
            (attention * gradient).clamp(min=0).mean(dim=1)
            for attention, gradient in zip(seen.attentions, seen.attention_gradients, strict=True)
        ]
        # R + M R = (I + M) R: the same product as a rollout without normalisation.
        return read_row(roll_out(layers, normalise=False), seen.position)


@dataclass(frozen=True)
class GradCam:
    """Weigh the last block's heads by their mean gradient.

    GradCAM for attention (Barkan et al. 2021; Chefer et al. 2021b): max(0, mean over heads of
    mean gradient times attention), read at the classifier's token. The published code then
    scales each matrix to 0..1, which changes no ranking and divides by 0 where all is 0.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the weighted attention of the read position."""
        seen = capture(session, batch)
        # Keys that are padding have a gradient although no attention reaches them.
        gradients = seen.attention_gradients[-1] * batch.attention[:, None, None, :]
        entries = _lengths(batch) * _queries(seen, batch)
        weights = gradients.sum(dim=(2, 3)) / entries[:, None]
        weighted = weights[:, :, None, None] * seen.attentions[-1]
        return read_row(weighted.mean(dim=1).clamp(min=0), seen.position)


@dataclass(frozen=True)
class Cam:
    """Average the last block's attention gradient over heads and queries.

    CAM as Song et al. compare with it: the positive part of the mean gradient per key,
    without any activation.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the mean gradient of each key."""
        seen = capture(session, batch)
        # Queries that are padding have gradient 0, so only the divisor must leave them out.
        summed = seen.attention_gradients[-1].mean(dim=1).sum(dim=1)
        return (summed / _queries(seen, batch)[:, None]).clamp(min=0)


@dataclass(frozen=True)
class AttCat:
    """Weigh each token's hidden state times gradient by the attention it receives.

    AttCAT, Qiang et al. 2022, Eq. 5-7: summed over the inputs of all blocks, attention
    averaged over heads and queries; signed.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the summed products."""
        seen = capture_square(session, batch)
        real = batch.attention.to(seen.attentions[0].dtype)
        scores = torch.zeros_like(real)
        for state, gradient, attention in zip(
            seen.hidden[:-1], seen.hidden_gradients[:-1], seen.attentions, strict=True
        ):
            received = (attention.mean(dim=1) * real[:, :, None]).sum(dim=1)
            impact = (state * gradient).sum(dim=-1)
            scores = scores + impact * received / _lengths(batch)[:, None]
        return scores


def _lengths(batch: Batch) -> torch.Tensor:
    """Return how many real tokens each example has."""
    return batch.attention.sum(dim=1)


def _queries(seen: Capture, batch: Batch) -> torch.Tensor:
    """Return how many real queries the last attention of each example has: its tokens, or one."""
    lengths = _lengths(batch)
    is_square = seen.attentions[-1].shape[2] == batch.ids.shape[1]
    return lengths if is_square else torch.ones_like(lengths)


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

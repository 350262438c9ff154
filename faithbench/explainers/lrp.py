"""Explainers built on the relevance pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.attention import read_row, roll_out
from faithbench.explainers.passes.attn_lrp import run_attn_lrp
from faithbench.explainers.passes.capture import capture_square
from faithbench.explainers.passes.heads import (
    Groups,
    corrupted_masks,
    corruption,
    drawn_masks,
    find_heads,
    heads_sha256,
    masks_nothing,
    named_masks,
)
from faithbench.explainers.passes.lrp import Products, Relevance, run_relevance
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.models.model import Model
from faithbench.models.session import Session, moved

_PRECISIONS = {
    "mixed": (torch.float64, torch.float32),
    "float64": (torch.float64, torch.float64),
    "float32": (torch.float32, torch.float32),
}
"""Of the pass, and of the three products in the linear rule's backward."""


@dataclass(frozen=True)
class Lrp:
    """Propagate relevance down to the embeddings.

    Bach et al. 2015 with the rules of Chefer et al. 2021b, to the embedding output, summed
    over its width; signed, and the scores of all tokens sum to 1.
    """

    revision: ClassVar[int] = 2  # 2: the products of the backward pass in float32.
    precision: str = "mixed"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the relevance of each token's embedding."""
        return shared_relevance(session, batch, self.precision).hidden[0].sum(dim=-1)


@dataclass(frozen=True)
class LrpPartial:
    """Propagate relevance down to the last block's attention only.

    Partial LRP, Voita et al. 2019: the positive part, heads averaged, at the token that the
    classifier reads.
    """

    revision: ClassVar[int] = 2  # 2: the products of the backward pass in float32.
    precision: str = "mixed"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the relevance of the last attention's row."""
        relevance = shared_relevance(session, batch, self.precision)
        return read_row(relevance.attentions[-1].clamp(min=0).mean(dim=1), relevance.position)


@dataclass(frozen=True)
class LrpRollout:
    """Roll out attention relevance weighted by its gradient.

    Transformer attribution, Chefer et al. 2021b, Eq. 13-14: positive part of gradient times
    relevance, heads averaged, identity added, rows normalised as in the published code.
    `last_only` is that code's default for its text benchmark: the last block alone.
    """

    revision: ClassVar[int] = 2  # 2: the products of the backward pass in float32.
    last_only: bool = False
    precision: str = "mixed"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the rolled-out relevance at the position the classifier reads."""
        seen = capture_square(session, batch)
        relevance = shared_relevance(session, batch, self.precision)
        first = -1 if self.last_only else 0
        return weighted_rollout(
            seen.attention_gradients[first:],
            relevance.attentions[first:],
            seen.position,
            normalise=True,
        )


@dataclass(frozen=True)
class LrpMask:
    """Propagate relevance through important heads only.

    Song et al. 2023, Eq. 5-11: relevance passes syntactic and positional heads, is
    renormalised so that it is conserved, weighted by the attention gradient and rolled
    out. `thresholds` is calibrated (the strictest that do not lower the AOPC of dev texts; on
    some models that is no mask) or paper (xi 0.1 and 0.8); `mask` is both, syntactic,
    positional, random (as many heads as both, drawn for each example), ones, or corrupted-30
    (both, and 30% of the other heads, drawn for each example); `released`
    follows the published code instead: a 0/1 mask without renormalisation, unmasked
    relevance in the rollout, rows normalised. The relevance pass divides by small numbers, so
    it runs in float64 whatever the model's precision; with `precision=mixed` all but the three
    products of the linear rule's backward, which divides by large ones.
    """

    revision: ClassVar[int] = 2  # 2: the products of the backward pass in float32.
    thresholds: str = "calibrated"
    mask: str = "both"
    released: bool = False
    precision: str = "mixed"

    @property
    def stochastic(self) -> bool:
        """Whether heads are drawn at random, for each example from its own seed."""
        return self.mask == "random" or corruption(self.mask) is not None

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the rolled-out relevance at the position the classifier reads."""
        seen = capture_square(session, batch)  # first: it refuses networks that have none
        rule = HeadRule(
            torch.tensor(self.weights(session.model, batch), device="cpu"), released=self.released
        )
        relevance = relevance_pass(session, batch, rule, self.precision)
        relevances = relevance.arrived if self.released else relevance.attentions
        return weighted_rollout(
            seen.attention_gradients, relevances, seen.position, normalise=self.released
        )

    def weights(self, model: Model, batch: Batch) -> Groups | list[Groups]:
        """Return the head weights that the settings choose, of each example if they are drawn."""
        if self.mask == "ones":
            config = model.network.config
            blocks, heads = config.num_hidden_layers, config.num_attention_heads
            return [[[1] * heads for _ in range(blocks)]]
        if self.mask == "random":
            return drawn_masks(find_heads(model), self.thresholds, batch.seeds)
        percent = corruption(self.mask)
        if percent is not None:
            return corrupted_masks(find_heads(model), self.thresholds, percent, batch.seeds)
        return named_masks(find_heads(model), self.thresholds, self.mask)

    def assets(self, model: Model) -> dict[str, str]:
        """Name the head statistics that the scores depend on, and tell if they choose no mask."""
        if self.mask == "ones":
            return {}
        no_mask = masks_nothing(find_heads(model), self.thresholds)
        return {"heads (no mask)" if no_mask else "heads": heads_sha256(model)}


def shared_relevance(session: Session, batch: Batch, precision: str) -> Relevance:
    """Return the unmasked relevance pass of a batch, shared by all explainers that read it."""
    return session.share(
        batch, f"lrp {precision}", lambda: _relevance(session.model, batch, None, precision)
    )


def relevance_pass(
    session: Session, batch: Batch, rule: HeadRule | None, precision: str = "mixed"
) -> Relevance:
    """Run the relevance pass at the asked precision, on the meter."""
    relevance = _relevance(session.model, batch, rule, precision)
    session.meter.charge(forwards=len(batch.ids), backwards=len(batch.ids))
    return relevance


def _relevance(model: Model, batch: Batch, rule: HeadRule | None, precision: str) -> Relevance:
    """Run the relevance pass, and leave its values, where the network of its precision is."""
    if precision not in _PRECISIONS:
        raise FaithbenchError(f"precision {precision!r} is not one of {', '.join(_PRECISIONS)}")
    dtype, products = _PRECISIONS[precision]
    network = model.eager(dtype)
    low = None if products == dtype else Products(products, model.magnitudes)
    return run_relevance(network, moved(batch, network.device), rule, low)


def weighted_rollout(
    gradients: tuple[torch.Tensor, ...],
    relevances: tuple[torch.Tensor, ...],
    position: torch.Tensor,
    *,
    normalise: bool,
) -> torch.Tensor:
    """Roll out the positive part of gradient times relevance, heads averaged (Eq. 10-11).

    Gradients follow the relevance, which may be on the CPU for its precision: moved first, for
    their own device may not have it.
    """
    where = relevances[0].device
    layers = [
        (gradient.to(where).to(relevance.dtype) * relevance).clamp(min=0).mean(dim=1)
        for gradient, relevance in zip(gradients, relevances, strict=True)
    ]
    return read_row(roll_out(layers, normalise=normalise), position.to(where))


@dataclass(frozen=True)
class AttnLrp:
    """Propagate relevance through attention and softmax.

    AttnLRP, Achtibat et al. 2024, Prop. 3.1-3.4 with the epsilon rule (Eq. 8) for linear
    layers, in the authors' gradient form: word embedding times modified gradient of the
    target's logit, summed over the width; signed. Biases and the softmax keep a share, so
    the scores do not sum to the logit.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the relevance of each word embedding."""
        scores = run_attn_lrp(session.model.network, batch)
        session.meter.charge(forwards=len(batch.ids), backwards=len(batch.ids))
        return scores

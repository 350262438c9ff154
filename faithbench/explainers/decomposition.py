"""Explainers that take each block's attention apart into what every token adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.attention import read_row
from faithbench.explainers.passes.blocks import AttentionMode, Block, Call, Recording, watch_blocks
from faithbench.explainers.passes.lrp_rules import share
from faithbench.models.devices import send
from faithbench.models.session import Session

ELEMENTS = 2**19
"""Number of floats held at once as T_i(x_j): few enough for the CPU's cache, and any memory."""

TOKENS = 2048
"""Padded tokens per call of a block when values are zeroed."""


class Variant(NamedTuple):
    """What is split, how its parts are measured, and whether rows are made to sum to 1."""

    both: bool
    distance: bool
    normalise: bool


_VARIANTS = {
    "alti": Variant(both=False, distance=True, normalise=True),
    "alti-ln2": Variant(both=True, distance=True, normalise=True),
    "norm": Variant(both=False, distance=False, normalise=True),
    "globenc": Variant(both=True, distance=False, normalise=False),
}
_ORDERS = {"l1": 1, "l2": 2}


@dataclass(frozen=True)
class Alti:
    """Split each block's state into what every token adds to it.

    ALTI, Ferrando et al. 2022: a block's state y_i (after attention, residual and layer norm)
    is a sum of vectors T_i(x_j) over tokens j and a constant; a token contributes
    max(0, |y_i| - |y_i - T_i(x_j)|), each row is divided by its sum, and the blocks' matrices
    are multiplied without an identity, since T_i(x_i) holds the residual. `norm` is the
    distance, l1 or l2. Variant `alti-ln2` (the released code's "ours2") goes on through the
    block's second layer norm. The other two measure |T_i(x_j)| in l2: `norm` (Kobayashi et al.
    2021) with rows divided by their sums, `globenc` (GlobEnc, Modarressi et al. 2022) through
    both layer norms and, like its released code, without: only the final scores sum to 1.

    ALTI's released code adds the layer norm's eps to the state and 1e-6 to each difference;
    here eps is where the model has it. The paper knows only blocks that end with a layer norm.
    In GPT-2, whose blocks begin with one, the state is what ln_2 makes of the residual sum, or
    with two what the next ln_1 (at last ln_f) makes of the output. Rows of zeros stay zeros.
    """

    variant: str = "alti"
    norm: str = "l1"

    def __call__(self, session: Session, batch: Batch) -> Tensor:
        """Return the rolled-out contributions at the position the classifier reads."""
        if self.variant not in _VARIANTS:
            raise FaithbenchError(f"variant {self.variant!r} is not one of {', '.join(_VARIANTS)}")
        if self.norm not in _ORDERS:
            raise FaithbenchError(f"norm {self.norm!r} is not one of {', '.join(_ORDERS)}")
        seen = recorded(session, batch)
        with torch.no_grad():
            return roll_back([self.layer(block, batch) for block in seen.blocks], seen.position)

    def layer(self, block: Block, batch: Batch) -> Tensor:
        """Return one block's contributions [examples, queries, tokens]."""
        variant = _VARIANTS[self.variant]
        order = _ORDERS[self.norm] if variant.distance else None
        parts = split(block, both=variant.both)
        matrix = torch.zeros_like(block.product.attention[:, 0])
        for example, encoding in enumerate(batch.encodings):
            size = len(encoding.ids)
            whole = parts.whole[example, :size]
            step = max(1, ELEMENTS // whole.numel())
            for start in range(0, size, step):
                tokens = slice(start, min(start + step, size))
                vectors = parts.vectors(example, size, tokens)
                matrix[example, :size, tokens] = contributions(vectors, whole, order).T
        return proportions(matrix) if variant.normalise else matrix


@dataclass(frozen=True)
class ValueZeroing:
    """Zero each token's value and measure how block outputs turn.

    Value Zeroing, Mohebbi et al. 2023: the cosine distance between a block's outputs with and
    without token j's value vector (in all heads, attention weights kept), each row divided by
    its sum. `rollout` multiplies the blocks' matrices, without an identity; otherwise the
    last block's is read. In GPT-2 the last block's output is taken before ln_f. Each token
    sends one row through each block: charged as a forward, or without rollout a block's share. So
    the work is quadratic in the number of tokens by definition, and cubic where attention counts.
    """

    rollout: bool = True

    def __call__(self, session: Session, batch: Batch) -> Tensor:
        """Return the distances, rolled out, at the position the classifier reads."""
        seen = recorded(session, batch)
        chosen = seen.blocks if self.rollout else seen.blocks[-1:]
        with torch.no_grad():
            matrices = [without_padding(zeroing(block, batch), batch) for block in chosen]
        part = len(chosen) / len(seen.blocks)
        rows = sum(len(encoding.ids) for encoding in batch.encodings)
        calls = len(_chunks(batch))
        session.meter.charge(forwards=ceil(rows * part), passes=ceil(calls * part))
        return roll_back([proportions(matrix) for matrix in matrices], seen.position)


@dataclass(frozen=True, eq=False)
class Split:
    """A state as a sum over tokens, and a constant: T_i(x_j), without storing all i and j.

    T_i(x_j) is the sum over heads of weight_ij source_j, and residual_i if i = j; `weights` is
    [examples, tokens, queries, heads], `sources` [examples, tokens, heads, width]; `whole` is
    the state [examples, tokens, width] that was split, bias terms included.
    """

    weights: Tensor
    sources: Tensor
    residual: Tensor
    whole: Tensor

    def vectors(self, example: int, size: int, tokens: slice) -> Tensor:
        """Return T_i(x_j) of one example for all queries i and some tokens j.

        They are [tokens, queries, width] without the padding behind `size`.
        """
        # A product of all queries and few tokens is several times as fast as of few queries and
        # all tokens: it is one of [queries, heads] with [heads, width] per token.
        vectors = self.weights[example, tokens, :size] @ self.sources[example, tokens]
        own = torch.arange(len(vectors), device=vectors.device)
        vectors[own, own + tokens.start] += self.residual[example, tokens]
        return vectors


def split(block: Block, *, both: bool) -> Split:
    """Split what the first layer norm after attention gives, or the second if `both`.

    With both, the feed-forward part counts as constant and its residual carries the vectors
    on; where blocks begin with a layer norm, that residual does not pass the first one.
    """
    chain = block.norms[:1] if not both else block.norms[1:] if block.pre else block.norms
    values = block.product.values
    weight = block.projection.weight.reshape(-1, values.shape[1], values.shape[3])
    sources, residual = torch.einsum("bhjv,dhv->bjhd", values, weight), block.inputs
    scale = torch.ones_like(residual[..., :1])
    for norm in chain:
        # Layer norm is linear but for each query's spread, so it is applied once per source.
        sources, residual = norm.linear(sources), norm.linear(residual)
        scale = scale / norm.spread()
    weights = (block.product.attention * scale[:, None]).permute(0, 3, 2, 1)
    # Batched products of strided matrices are up to fifty times slower.
    return Split(weights.contiguous(), sources.contiguous(), residual * scale, chain[-1].outputs)


def contributions(vectors: Tensor, whole: Tensor, order: int | None) -> Tensor:
    """Reduce vectors [..., width]: by distance to the whole in an l1 or l2 norm, or their size."""
    if order is None:
        return length(vectors)
    return (length(whole, order) - length(vectors - whole, order)).clamp(min=0)


def length(vectors: Tensor, order: int = 2) -> Tensor:
    """Return the l1 or l2 norm of vectors [..., width]."""
    if order == 1:
        # Torch's own l1 norm is not vectorised: several times slower than the sum it stands for.
        return vectors.abs().sum(dim=-1)
    norms: Tensor = torch.linalg.vector_norm(vectors, order, dim=-1)
    return norms


def zeroing(block: Block, batch: Batch) -> Tensor:
    """Return how far outputs turn without a token's value, [examples, queries, tokens]."""
    distances = torch.zeros_like(block.product.attention[:, 0])
    usual = F.normalize(block.call.outputs, dim=-1)
    for examples, tokens in _chunks(batch):
        with ZeroValues(tokens):
            changed = F.normalize(call_again(block.call, examples), dim=-1)
        # |a/|a| - b/|b||^2 / 2 is 1 - cos(a, b) without its cancellation.
        distances[examples, :, tokens] = (changed - usual[examples]).square().sum(dim=-1) / 2
    return distances


class ZeroValues(AttentionMode):
    """Multiply attention with values of which each row lacks one token's."""

    def __init__(self, tokens: Tensor) -> None:
        super().__init__()
        self.tokens = tokens

    def product(self, attention: Tensor, values: Tensor) -> Tensor:
        """Return the product without the chosen token of each row."""
        without = self.tokens[:, None] == torch.arange(values.shape[2], device=values.device)
        return attention @ values.masked_fill(without[:, None, :, None], 0)


def call_again(call: Call, examples: Tensor) -> Tensor:
    """Run a block on chosen examples of the batch it was recorded with, and return its state."""
    count = len(call.outputs)
    kwargs = {name: _take(value, examples, count) for name, value in call.kwargs.items()}
    output = call.module(*_take(call.args, examples, count), **kwargs)
    state: Tensor = output[0] if isinstance(output, tuple) else output
    return state


def _take(value: Any, examples: Tensor, count: int) -> Any:
    """Choose examples from tensors with one row per example; drop the cache of past keys."""
    from transformers import Cache

    if isinstance(value, tuple | list):
        return type(value)(_take(item, examples, count) for item in value)
    if isinstance(value, Tensor) and value.dim() > 1 and len(value) == count:
        return value[examples]
    return None if isinstance(value, Cache) else value


def _chunks(batch: Batch) -> list[tuple[Tensor, Tensor]]:
    """List real tokens as (examples, tokens), as many at a time as fit TOKENS."""
    step = max(1, TOKENS // batch.ids.shape[1])
    # By the encodings' lengths: to find them in the batch, the host would wait for the device.
    sizes = [len(encoding.ids) for encoding in batch.encodings]
    examples = np.repeat(np.arange(len(sizes)), sizes)
    tokens = np.concatenate([np.arange(size) for size in sizes])
    sent = send([examples, tokens], batch.ids.device)
    return list(zip(*(part.split(step) for part in sent), strict=True))


def recorded(session: Session, batch: Batch) -> Recording:
    """Record the blocks of one forward pass, on the meter."""
    seen = watch_blocks(session.model.eager(), batch)
    session.meter.charge(forwards=len(batch.encodings))
    return seen


def without_padding(matrix: Tensor, batch: Batch) -> Tensor:
    """Set rows and columns of padding to 0."""
    real = batch.attention.to(matrix)
    return matrix * real[:, :, None] * real[:, None]


def proportions(values: Tensor) -> Tensor:
    """Divide by the sum over the last dimension; where that is 0, all stays 0."""
    return share(values, values.sum(dim=-1, keepdim=True))


def roll_back(layers: Sequence[Tensor], position: Tensor) -> Tensor:
    """Return the read position's row of the product of matrices, last block leftmost.

    The row is divided by its sum on the way, which no matrix whose rows sum to 1 would notice;
    without, GlobEnc's grows with every block until it overflows.
    """
    row = read_row(layers[-1], position)
    for layer in reversed(layers[:-1]):
        row = (proportions(row)[:, None] @ layer)[:, 0]
    return proportions(row)

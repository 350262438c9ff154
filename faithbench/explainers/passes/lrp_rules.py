"""The relevance rules, one autograd function each: the value of the operation, LRP backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from faithbench.core.types import Bools
from faithbench.models.magnitudes import Factors


def share(amount: Tensor, whole: Tensor) -> Tensor:
    """Return amount / whole; where the whole is 0, the share is 0."""
    # A finite number divided by infinity is 0, in the backward pass too.
    return amount / whole.masked_fill(whole == 0, torch.inf)


def totals(relevance: Tensor) -> Tensor:
    """Sum over everything but the first dimension, kept for broadcasting: per example."""
    return relevance.sum(dim=tuple(range(1, relevance.dim())), keepdim=True)


def apply(rule: type[Function], *values: Any) -> Tensor:
    """Call a rule; torch leaves `Function.apply` untyped."""
    result: Tensor = rule.apply(*values)
    return result


class IdentityRule(Function):
    """Take a value that was computed elsewhere; relevance passes through unchanged."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor) -> Tensor:
        """Return the value."""
        ctx.dtype = x.dtype
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Return the relevance."""
        return relevance.to(ctx.dtype), None


class LinearRule(Function):
    """Share relevance among positive contributions only (alpha 1, beta 0; Song et al., Eq. 4).

    With x+ W+ + x- W- = (xW + |x||W|) / 2, the positive part costs one product besides the
    forward's own, and its transpose likewise: four products in all, where the definition
    spelled out takes five or more. The three of the backward pass are taken at the precision of
    `factors`, which may be lower than that of x: sums of positive parts are well conditioned.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, factors: Factors | None = None
    ) -> Tensor:
        """Return x W^T + bias."""
        product = F.linear(x, weight)
        ctx.save_for_backward(x, product, *(factors or (weight,)))
        ctx.shape = x.shape
        return product.clone() if bias is None else product + bias

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Return R_in = x+ (S W+) + x- (S W-) with S = R / (x+ W+ + x- W-)."""
        x, product, *factors = (t.detach() for t in ctx.saved_tensors)
        weight, magnitude = factors if len(factors) > 1 else (factors[0], factors[0].abs())
        x, product, relevance = (t.flatten(0, -2) for t in (x, product, relevance))
        # Tokens without relevance pass none on: padding, and all but one in the last block.
        rows = relevance.any(dim=-1).nonzero().squeeze(-1) if picks_rows(x.device) else None
        if rows is None or 2 * len(rows) > len(relevance):
            passed = positive_shares(x, weight, magnitude, product, relevance)
        else:
            part = positive_shares(x[rows], weight, magnitude, product[rows], relevance[rows])
            passed = torch.zeros_like(x).index_copy_(0, rows, part)
        return passed.view(ctx.shape), None, None, None


def picks_rows(device: torch.device) -> bool:
    """Return whether rows without relevance are left out.

    Only where asking how many there are costs nothing: a GPU would idle until the host knows, in
    each linear layer.
    """
    return device.type == "cpu"


def positive_shares(
    x: Tensor, weight: Tensor, magnitude: Tensor, product: Tensor, relevance: Tensor
) -> Tensor:
    """Return x+ (S W+) + x- (S W-) for rows x [rows, inputs] with `product` = x W^T.

    Products are at the precision of `weight` and its `magnitude`, all else at that of x.
    """
    wide, x = x.dtype, x.to(weight.dtype)
    size = x.abs()
    whole = (size @ magnitude.T).to(wide)
    positive = product + whole
    # Without a positive contribution xW = -|x||W|, and their sum is rounding error of at most
    # inputs * eps * |x||W|: it counts as 0, and so does the share.
    nothing = positive <= whole.mul_(x.shape[-1] * torch.finfo(x.dtype).eps)
    per_output = relevance / positive.masked_fill_(nothing, torch.inf)
    if x.dtype == wide:
        return torch.addcmul(size.mul_(per_output @ magnitude), x, per_output @ weight)
    # Relevance per output may be too large or too small for the products' exponents: each row
    # goes through them divided by its largest entry.
    largest = per_output.abs().amax(dim=-1, keepdim=True)
    scaled = per_output.div_(largest.masked_fill(largest == 0, 1)).to(x.dtype)
    passed = torch.addcmul(size.mul_(scaled @ magnitude), x, scaled @ weight)
    return passed.to(wide).mul_(largest)


class MatmulRule(Function):
    """Share relevance by contribution, half to each factor, so that the sum is conserved."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        """Return a b."""
        product = a @ b
        ctx.save_for_backward(a, b, product)
        return product

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Return R_a = a (S b^T) / 2 and R_b = b (a^T S) / 2 with S = R / (a b)."""
        a, b, product = ctx.saved_tensors
        part = share(relevance, product)
        return a * (part @ b.mT) / 2, b * (a.mT @ part) / 2


class AddRule(Function):
    """Share relevance by contribution, then scale both terms so that the sum is conserved.

    The scaling is Chefer et al. 2021b, Eq. 10, with sums per example: over the whole batch,
    as published code has it, one example's explanation would depend on its neighbours.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        """Return a + b."""
        if a.shape != b.shape:
            raise ValueError(f"relevance of a sum needs equal shapes, found {a.shape}, {b.shape}")
        total = a + b
        ctx.save_for_backward(a, b, total)
        return total

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Return both terms' relevance."""
        a, b, total = ctx.saved_tensors
        part = share(relevance, total)
        of_a, of_b = a * part, b * part
        sum_a, sum_b, whole = totals(of_a), totals(of_b), totals(relevance)
        weight = sum_a.abs() + sum_b.abs()
        scale_a = share(share(sum_a.abs(), weight) * whole, sum_a)
        scale_b = share(share(sum_b.abs(), weight) * whole, sum_b)
        return of_a * scale_a, of_b * scale_b


@dataclass(frozen=True)
class HeadRule:
    """Which heads relevance may pass: weights [groups, blocks, heads], alike for all examples.

    They lie on the CPU, so that which blocks are open is known without waiting for a device.
    Each example has heads of its own where `groups` is [examples, groups, blocks, heads].
    `released` follows the published code: one 0/1 mask, nothing renormalised, and blocks
    without a head stay open. Otherwise each group is masked and renormalised on its own
    (Song et al., the equations before Eq. 10), which conserves relevance.
    """

    groups: Tensor
    released: bool = False

    def opens(self, block: int) -> Bools:
        """Return for each example, or once for all, whether a head of the block passes any."""
        selected: Bools = (self._weights(block).numpy() != 0).any(axis=-1).any(axis=0)
        return np.ones_like(selected) if self.released else selected

    def apply(self, block: int, relevance: Tensor) -> Tensor:
        """Mask relevance [examples, heads, tokens, width] of a block's heads."""
        weights = self._weights(block).to(relevance)[..., None, None]
        if self.released:
            return relevance * (weights.sum(0) > 0)
        parts = relevance[None] * weights
        sums = parts.sum(dim=(2, 3, 4), keepdim=True)
        # The paper divides by |sum of all groups|, which conserves only when their signs agree;
        # the sum of magnitudes is the same then, and conserves always.
        shares = share(sums.abs(), sums.abs().sum(0, keepdim=True).expand_as(sums))
        return (parts * share(shares * totals(relevance)[None], sums)).sum(0)

    def _weights(self, block: int) -> Tensor:
        """Return a block's weights [groups, examples, heads], or with 1 for all examples."""
        groups = self.groups if self.groups.dim() == 4 else self.groups[None]
        return groups[:, :, block].transpose(0, 1)


class AttentionValueRule(Function):
    """The product rule for attention times values, with heads masked on the way."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        v: Tensor,
        block: int,
        heads: HeadRule | None,
        arrived: dict[int, Tensor],
    ) -> Tensor:
        """Return a v."""
        product = a @ v
        ctx.save_for_backward(a, v, product)
        ctx.block, ctx.heads, ctx.arrived = block, heads, arrived
        return product

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> tuple[Tensor | None, ...]:
        """Return the relevance of both factors; keep what arrived before masking."""
        a, v, product = ctx.saved_tensors
        if ctx.heads is not None:
            ctx.arrived[ctx.block] = a * (share(relevance, product) @ v.mT)
            relevance = ctx.heads.apply(ctx.block, relevance)
        part = share(relevance, product)
        return a * (part @ v.mT) / 2, v * (a.mT @ part) / 2, None, None, None

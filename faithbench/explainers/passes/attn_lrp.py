"""AttnLRP as input times a modified gradient, on unmodified networks.

Achtibat et al. 2024, "AttnLRP: Attention-Aware Layer-Wise Relevance Propagation for
Transformers". With relevance R = x g, each of its rules is a rule for the gradient g:

    sums, linear layers    epsilon rule (Eq. 8), epsilon 0, biases keep their share: g as it is
    softmax                Taylor rule (Prop. 3.1), R_i = x_i (R_i - s_i sum_j R_j): g as it is
    element-wise functions identity rule (Eq. 9): f(x) / x in the place of f'(x)
    products of two        uniform rule (Eq. 7; Prop. 3.2 and 3.3): half of g to each factor
    LayerNorm              identity rule (Prop. 3.4): the standard deviation is a constant
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import embedding_leaf
from faithbench.explainers.passes.lrp_rules import apply
from faithbench.explainers.passes.rule_mode import (
    ELEMENTWISE,
    LAYERS,
    MATMULS,
    PRODUCTS,
    QUOTIENTS,
    SAME_TENSOR,
    SOFTMAXES,
    SUMS,
    Curve,
    Operation,
    RuleMode,
    SlopeRule,
    derivative,
    on_path,
    widen,
)
from faithbench.models.encoding import inputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def run_attn_lrp(network: PreTrainedModel, batch: Batch) -> Tensor:
    """Return the relevance of each word embedding for the target's logit [examples, tokens]."""
    rules = AttnLrpRules()
    with torch.enable_grad(), embedding_leaf(network) as leaf, rules.watch(network), rules:
        out = network(**inputs_of(network, batch.ids, batch.types, batch.attention))
    targets = out[batch.output].gather(1, batch.targets[:, None]).sum()
    (gradient,) = torch.autograd.grad(targets, leaf[0])
    return (leaf[0].detach() * gradient).sum(dim=-1)


class AttnLrpRules(RuleMode):
    """Change the gradient of what is not linear to its AttnLRP rule; refuse what has none."""

    name = "AttnLRP"

    def curve(self, function: Curve, x: Tensor, value: Tensor) -> Tensor:
        """Apply the identity rule: the gradient is f(x) / x, and f'(0) at 0."""
        # 0 / 0 at x = 0, where the limit of f(x) / x is f'(0), since f(0) = 0.
        still = x.detach()
        at_zero = derivative(function, still.new_zeros(()))
        slope = torch.where(still == 0, at_zero, value / still)
        return apply(SlopeRule, x, value, slope)

    def softmax(
        self,
        _func: Operation,
        scores: Tensor,
        dim: int = -1,
        dtype: torch.dtype | None = None,
        **_options: Any,
    ) -> Tensor:
        """Leave the gradient as it is: it is the Taylor rule."""
        return torch.softmax(widen(scores, dtype), dim)

    def product(self, func: Operation, a: Any, b: Any) -> Tensor:
        """Apply the uniform rule, unless one factor is a constant."""
        value = self.keep(func, a, b)
        return scale_gradient(value, 0.5) if on_path([a]) and on_path([b]) else value

    def quotient(self, func: Operation, a: Any, b: Any) -> Tensor:
        """Leave the gradient of a division by a constant as it is."""
        if on_path([b]):
            raise self.missing(func)
        return self.keep(func, a, b)

    def attend(self, func: Operation, q: Tensor, k: Tensor, v: Tensor, **kwargs: Any) -> Tensor:
        """Attend in one fused operation: queries and keys pass two products, values one."""
        quarters = scale_gradient(q, 0.25), scale_gradient(k, 0.25)
        return self.keep(func, *quarters, scale_gradient(v, 0.5), **kwargs)

    def normalise(
        self,
        _func: Operation,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Apply the identity rule to the division by the standard deviation."""
        return apply(NormRule, x, list(shape), weight, bias, eps)

    rules: ClassVar[Mapping[Operation, Callable[..., Any]]] = {
        **dict.fromkeys(SAME_TENSOR | SUMS | LAYERS, RuleMode.keep),
        **dict.fromkeys(SOFTMAXES, softmax),
        **dict.fromkeys(ELEMENTWISE, RuleMode.elementwise),
        **dict.fromkeys(PRODUCTS | MATMULS, product),
        **dict.fromkeys(QUOTIENTS, quotient),
        F.scaled_dot_product_attention: attend,
        F.layer_norm: normalise,
    }


def scale_gradient(x: Tensor, factor: float) -> Tensor:
    """Return x, whose gradient is multiplied by a factor on its way back."""
    return apply(ScaleRule, x, factor)


class ScaleRule(Function):
    """Change nothing but the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        """Return x."""
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient times the factor."""
        return gradient * ctx.factor, None


class NormRule(Function):
    """LayerNorm in which the standard deviation counts as a constant."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        shape: list[int],
        weight: Tensor | None,
        bias: Tensor | None,
        eps: float,
    ) -> Tensor:
        """Return (x - mean) / std times weight, plus bias."""
        value, _, inverse = torch.native_layer_norm(x, shape, weight, bias, eps)
        ctx.save_for_backward(inverse, weight)
        ctx.dims = tuple(range(-len(shape), 0))
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradient times weight / std, less its mean."""
        inverse, weight = ctx.saved_tensors
        scaled = gradient * inverse if weight is None else gradient * inverse * weight
        centred = scaled - scaled.mean(ctx.dims, keepdim=True)
        return centred.to(gradient.dtype), None, None, None, None

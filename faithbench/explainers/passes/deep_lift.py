"""DeepLIFT multipliers as a backward pass over pairs of input and baseline.

Shrikumar et al. 2017, "Learning Important Features Through Propagating Activation
Differences". Inputs and baselines run as one batch, [inputs; baselines]. Inside
`DeepLiftRules` each operation keeps its value, and its gradient becomes a multiplier m with
sum m (x - x0) = y - y0 (summation to delta, Eq. 1, with multipliers chained as in Eq. 3):

    sums, linear layers    the gradient itself
    element-wise functions rescale rule: (f(x) - f(x0)) / (x - x0)
    products of two        midpoint rule: m (b + b0) / 2 to a and m (a + a0) / 2 to b, which is
                           exact, and the Shapley values of the product
    softmax                exp(x - log sum exp x), each step by the rescale rule
    LayerNorm              square and product by the midpoint, 1 / std by the rescale rule

A softmax taken apart as exp(x) times 1 / sum exp x is as exact on paper, but its multipliers
grow as e^|difference of log sum exp|: on the bundled model no digit is left in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from faithbench.core.errors import CannotServeError
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
    T,
    derivative,
    on_path,
    widen,
)
from faithbench.models.encoding import inputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class DeepLift:
    """Contributions [examples, tokens] to each example's difference of logits.

    `gap` is the sum of the contributions less the difference: 0 but for rounding.
    """

    scores: Tensor
    difference: Tensor
    gap: Tensor


def run_deep_lift(
    network: PreTrainedModel, batch: Batch, inputs: Tensor, baselines: Tensor
) -> DeepLift:
    """Split the target's logit at word embeddings `inputs`, less that at `baselines`, by token.

    Both are [examples, tokens, width]. Positions, segments and attention mask are those of the
    batch in both, so that only embeddings differ.
    """
    pairs = torch.cat([inputs, baselines]).to(network.dtype)
    ids, types, attention = (t.repeat(2, 1) for t in (batch.ids, batch.types, batch.attention))
    rules = DeepLiftRules()
    with torch.enable_grad(), embedding_leaf(network, pairs) as leaf, rules.watch(network), rules:
        out = network(**inputs_of(network, ids, types, attention))
    logits, logits0 = halves(out[batch.output].gather(1, batch.targets.repeat(2)[:, None])[:, 0])
    # Rows are independent, so the gradient of the sum holds each example's own multipliers.
    (multipliers,) = torch.autograd.grad(logits.sum(), leaf[0])
    x, x0 = halves(pairs)
    scores = (halves(multipliers)[0] * (x - x0)).sum(dim=-1)
    difference = (logits - logits0).detach()
    gap = scores.sum(dim=1) - difference
    if not bool((gap.abs() <= TOLERANCE * (1 + difference.abs())).all()):
        raise CannotServeError(
            f"DeepLIFT contributions miss the difference of logits by {gap.abs().max():.1e}: this "
            f"{network.config.model_type} model does not treat every example on its own, or needs "
            "more digits; choose a gradient or perturbation explainer"
        )
    return DeepLift(scores, difference, gap)


TOLERANCE = 0.01
"""The gap, relative to the difference of logits, at which contributions are refused."""

CURVES: set[Operation] = {
    torch.exp, T.exp, torch.rsqrt, T.rsqrt, torch.reciprocal, T.reciprocal, torch.sigmoid,
    T.sigmoid, torch.pow, T.pow, T.__pow__,
}  # fmt: skip
"""Functions of one tensor, entry by entry, that need not be 0 at 0."""


class DeepLiftRules(RuleMode):
    """Turn the gradient of every operation into its multiplier; refuse what has no rule."""

    name = "DeepLIFT"

    def curve(self, function: Curve, x: Tensor, value: Tensor) -> Tensor:
        """Apply the rescale rule; where x and x0 all but meet, its limit f' halfway."""
        (a, b), (fa, fb) = halves(x.detach()), halves(value)
        step = a - b
        # Below this, the difference of f has fewer digits than the derivative is exact to.
        close = step.abs() <= torch.finfo(x.dtype).eps ** 0.5 * torch.maximum(a.abs(), b.abs())
        slope = torch.where(close, derivative(function, (a + b) / 2), (fa - fb) / step)
        return apply(SlopeRule, x, value, twice(slope))

    def product(self, func: Operation, a: Any, b: Any) -> Tensor:
        """Apply the midpoint rule, unless one factor is a constant."""
        if not (on_path([a]) and on_path([b])):
            return self.keep(func, a, b)
        return apply(MidpointRule, a, b, func in MATMULS)

    def quotient(self, func: Operation, a: Any, b: Any) -> Tensor:
        """Multiply by the reciprocal, unless the divisor is a constant."""
        if not on_path([b]):
            return self.keep(func, a, b)
        return self.product(torch.mul, a, self.curve(torch.reciprocal, b, 1 / b.detach()))

    def softmax(
        self,
        _func: Operation,
        scores: Tensor,
        dim: int = -1,
        dtype: torch.dtype | None = None,
        **_options: Any,
    ) -> Tensor:
        """Apply the rescale rule in three steps."""
        return apply(SoftmaxRule, widen(scores, dtype), dim)

    def normalise(
        self,
        _func: Operation,
        x: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        """Subtract the mean, and multiply by 1 / std."""
        dims = tuple(range(-len(shape), 0))
        centred = x - x.mean(dims, keepdim=True)
        variance = apply(MidpointRule, centred, centred, False).mean(dims, keepdim=True)
        scale = torch.rsqrt(variance.detach() + eps)
        r, r0 = halves(scale)
        # r = 1 / sqrt(v), so v - v0 = 1 / r^2 - 1 / r0^2 and (r - r0) / (v - v0) is
        # -(r r0)^2 / (r + r0): the same slope without a difference of nearly equal numbers.
        slope = twice(-((r * r0) ** 2) / (r + r0))
        inverse = apply(SlopeRule, variance, scale, slope)
        result = apply(MidpointRule, centred, inverse, False)
        result = result if weight is None else result * weight
        return result if bias is None else result + bias

    rules: ClassVar[Mapping[Operation, Callable[..., Any]]] = {
        **dict.fromkeys(SAME_TENSOR | SUMS | LAYERS, RuleMode.keep),
        **dict.fromkeys(ELEMENTWISE | CURVES, RuleMode.elementwise),
        **dict.fromkeys(PRODUCTS | MATMULS, product),
        **dict.fromkeys(QUOTIENTS, quotient),
        **dict.fromkeys(SOFTMAXES, softmax),
        F.layer_norm: normalise,
    }


def halves(x: Tensor) -> tuple[Tensor, Tensor]:
    """Split what belongs to inputs from what belongs to baselines."""
    first, second = x.chunk(2)
    return first, second


def twice(x: Tensor) -> Tensor:
    """Give inputs and baselines the same values."""
    return torch.cat([x, x])


def of_inputs(multipliers: Tensor) -> Tensor:
    """Pad with zeros for the baselines, whose multipliers are never read."""
    return torch.cat([multipliers, torch.zeros_like(multipliers)])


class MidpointRule(Function):
    """A product of two activations, of matrices or entry by entry."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, matrices: bool) -> Tensor:
        """Return a b."""
        ctx.save_for_backward(a, b)
        ctx.matrices = matrices
        return a @ b if matrices else a * b

    @staticmethod
    def backward(ctx: Any, m: Tensor) -> tuple[Tensor | None, ...]:
        """Return m (b + b0) / 2 and m (a + a0) / 2, summed where a factor was repeated."""
        a, b = ((t + t0) / 2 for t, t0 in map(halves, ctx.saved_tensors))
        m, _ = halves(m)
        if ctx.matrices:
            return of_inputs(m @ b.mT), of_inputs(a.mT @ m), None
        of_a, of_b = (m * b).sum_to_size(a.shape), (m * a).sum_to_size(b.shape)
        return of_inputs(of_a), of_inputs(of_b), None


class SoftmaxRule(Function):
    """The rescale rule for s = exp(x - l), l = log S, S = sum exp x.

    The slope of exp between two points is the logarithmic mean L of its values there, that of
    log is 1 / L, so m_x = u - w sum u with u = m L(s, s0) and w = L(exp x, exp x0) / L(S, S0).
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        """Return the softmax."""
        ctx.save_for_backward(x)
        ctx.dim = dim
        return torch.softmax(x, dim)

    @staticmethod
    def backward(ctx: Any, m: Tensor) -> tuple[Tensor | None, ...]:
        """Return the multipliers of the scores."""
        x, x0 = halves(ctx.saved_tensors[0])
        total, total0 = (t.logsumexp(ctx.dim, keepdim=True) for t in (x, x0))
        u = halves(m)[0] * logarithmic_mean(x - total, x0 - total0)
        # The quotient of two logarithmic means does not change if both are scaled by e^-top,
        # which keeps every exponential at or below 1.
        top = torch.maximum(total, total0)
        w = logarithmic_mean(x - top, x0 - top) / logarithmic_mean(total - top, total0 - top)
        return of_inputs(u - w * u.sum(ctx.dim, keepdim=True)), None


def logarithmic_mean(x: Tensor, x0: Tensor) -> Tensor:
    """Return (exp x - exp x0) / (x - x0), exp x where both are the same."""
    top = torch.maximum(x, x0)
    # e^top (1 - e^-step) / step: expm1 keeps its digits for small steps. Masked scores are -inf
    # in both, and their difference is not a number.
    step = torch.where(x == x0, 0, top - torch.minimum(x, x0))
    return top.exp() * torch.where(
        step == 0, 1, -torch.expm1(-step) / step.masked_fill(step == 0, 1)
    )

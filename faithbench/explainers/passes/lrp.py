"""Layer-wise relevance propagation as a backward pass, on unmodified networks.

Inside `LrpRules`, each primitive that the network calls is replaced by one with the same
value whose backward is the relevance rule; `torch.autograd.grad` is then the relevance
pass. Reshapes, fan-out and padding need no rule of their own. Rules: Chefer et al. 2021b
(the positive-part linear rule is Eq. 4 of Song et al.), sums taken per example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from faithbench.core.errors import CannotServeError
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import embedding_leaf, readable
from faithbench.explainers.passes.lrp_rules import (
    AddRule,
    AttentionValueRule,
    HeadRule,
    IdentityRule,
    LinearRule,
    MatmulRule,
    apply,
)
from faithbench.explainers.passes.rule_mode import SAME_TENSOR, Curve, RuleMode, on_path, widen
from faithbench.models.encoding import inputs_of
from faithbench.models.magnitudes import Factors, Magnitudes

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Relevance:
    """Relevance of the target's score, one row per example.

    `hidden` [examples, tokens, width] per block boundary, embedding output first;
    `attentions` [examples, heads, queries, keys] per block, zero where the head rule leaves
    a block out; `arrived` is the same before the head rule and before halving.
    """

    hidden: tuple[Tensor, ...]
    attentions: tuple[Tensor, ...]
    arrived: tuple[Tensor, ...]
    position: Tensor


def run_relevance(
    network: PreTrainedModel,
    batch: Batch,
    heads: HeadRule | None = None,
    products: Products | None = None,
) -> Relevance:
    """Propagate relevance 1 from each example's target class down to the embedding output.

    Without `products`, those of the linear rule are taken at the network's own precision.
    """
    rules = LrpRules(heads, products)
    with torch.enable_grad(), embedding_leaf(network), rules.watch(network), rules:
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention),
            output_attentions=True,
            output_hidden_states=True,
        )
    hidden, attentions = readable(network, out)
    # Seeding each example's target with 1 is the gradient of the sum of the targets.
    targets = out[batch.output].gather(1, batch.targets[:, None]).sum()
    gradients = torch.autograd.grad(targets, (*hidden, *attentions), allow_unused=True)
    if gradients[0] is None:
        raise CannotServeError(
            f"a {network.config.model_type} model hands out copies of its states, which relevance "
            "does not reach; choose a gradient or perturbation explainer"
        )
    relevances = [
        torch.zeros_like(t) if r is None else r
        for t, r in zip((*hidden, *attentions), gradients, strict=True)
    ]
    blocks = len(hidden)
    return Relevance(
        hidden=tuple(relevances[:blocks]),
        attentions=tuple(relevances[blocks:]),
        arrived=tuple(rules.arrived[i] for i in sorted(rules.arrived)),
        position=relevances[blocks - 1].abs().sum(-1).argmax(-1),
    )


@dataclass(frozen=True, eq=False)
class Products:
    """The precision of the linear rule's backward products, and where weights are kept for it."""

    dtype: torch.dtype
    kept: Magnitudes


class LrpRules(RuleMode):
    """Give every operation on the relevance path its rule; refuse one that has none."""

    name = "relevance"

    def __init__(self, heads: HeadRule | None = None, products: Products | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.products = products
        self.arrived: dict[int, Tensor] = {}
        self.blocks = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace one call; a branch that is shut for some examples stays marked up to its sum."""
        result = super().__torch_function__(func, types, args, kwargs)
        marks = (getattr(value, "faithbench_opened", None) for value in args)
        opened = next((mark for mark in marks if mark is not None), None)
        # A constant that is added, such as a bias, does not end the branch.
        ends = RULES.get(func) is _ADD and all(on_path((value,)) for value in args)
        if opened is not None and isinstance(result, Tensor) and not ends:
            result.faithbench_opened = opened  # type: ignore[attr-defined]  # a mark, not data
        return result

    def replace(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Return the value of one operation, with its relevance rule."""
        if func in SAME_TENSOR:
            return _carry_mark(args[0], func(*args, **kwargs))
        if func in IDENTITY:
            return apply(IdentityRule, args[0], func(*_detached(args), **kwargs))
        rule = RULES.get(func)
        if rule is None:
            raise self.missing(func)
        return rule(self, *args, **kwargs)

    def curve(self, _function: Curve, x: Tensor, value: Tensor) -> Tensor:
        """Pass relevance through an activation module."""
        return apply(IdentityRule, x, value)

    def softmax(self, scores: Tensor, dim: int = -1, **options: Any) -> Tensor:
        """Pass relevance through, and number the attention matrix by its block."""
        wide = widen(scores.detach(), options.get("dtype"))
        result = apply(IdentityRule, scores, torch.softmax(wide, dim))
        result.faithbench_block = self.blocks  # type: ignore[attr-defined]  # a mark, not data
        self.blocks += 1
        return result

    def matmul(self, a: Tensor, b: Tensor) -> Tensor:
        """Split relevance between both factors; attention times values obeys the head rule."""
        block = getattr(a, "faithbench_block", None)
        if block is None:
            return apply(MatmulRule, a, b)
        if self.heads is None:
            return apply(AttentionValueRule, a, b, block, None, self.arrived)
        opened = self.heads.opens(block)
        if not opened.any():
            return a.detach() @ b.detach()
        result = apply(AttentionValueRule, a, b, block, self.heads, self.arrived)
        if not opened.all():
            mark = torch.from_numpy(opened).to(result.device)
            result.faithbench_opened = mark  # type: ignore[attr-defined]  # a mark, not data
        return result

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Apply the positive-part rule; the bias takes no relevance."""
        return apply(LinearRule, x, weight, bias, self._factors(weight))

    def addmm(self, bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        """Treat GPT-2's transposed linear layer as a linear layer."""
        # Kept by the weight itself: its transpose is a new tensor every time.
        factors = self._factors(weight)
        turned = factors and Factors(factors.weight.T, factors.magnitude.T)
        return apply(LinearRule, x, weight.T, bias, turned)

    def _factors(self, weight: Tensor) -> Factors | None:
        if self.products is None:
            return None
        return self.products.kept.of(weight, self.products.dtype)

    def add(self, a: Any, b: Any, **options: Any) -> Tensor:
        """Split relevance between two terms; a constant term takes none."""
        if options:
            raise self.missing(f"add with {', '.join(options)}")
        if on_path((a,)) and on_path((b,)):
            return _joined(a, b)
        moving, still = (a, b) if on_path((a,)) else (b, a)
        return apply(IdentityRule, moving, moving.detach() + still)

    def scale(self, a: Any, b: Any, **_options: Any) -> Tensor:
        """Pass relevance through a constant factor."""
        if on_path((a,)) and on_path((b,)):
            raise self.missing("the element-wise product of two activations")
        moving, still = (a, b) if on_path((a,)) else (b, a)
        return apply(IdentityRule, moving, moving.detach() * still)

    def divide(self, a: Tensor, b: Any) -> Tensor:
        """Pass relevance through a constant divisor."""
        if on_path((b,)):
            raise self.missing("a division by an activation")
        return apply(IdentityRule, a, a.detach() / b)


def _joined(a: Tensor, b: Tensor) -> Tensor:
    """Add two terms by the rule of sums; a term that is shut for an example takes nothing there.

    So a block without a head passes the example's relevance through the residual unchanged.
    """
    total = apply(AddRule, a, b)
    for term, other in ((a, b), (b, a)):
        opened = getattr(term, "faithbench_opened", None)
        if opened is not None:
            alone = apply(IdentityRule, other, total.detach())
            total = torch.where(opened.view(-1, *[1] * (total.dim() - 1)), total, alone)
    return total


def _detached(values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(v.detach() if isinstance(v, Tensor) else v for v in values)


def _carry_mark(source: Tensor, result: Tensor) -> Tensor:
    """Keep an attention matrix recognisable after dropout or a change of type."""
    block = getattr(source, "faithbench_block", None)
    if block is not None:
        result.faithbench_block = block  # type: ignore[attr-defined]  # a mark, not data
    return result


T = torch.Tensor
IDENTITY = {F.layer_norm, F.gelu, F.relu, F.tanh, F.silu, torch.tanh, torch.relu, T.tanh, T.relu}
"""Normalisation and element-wise functions pass relevance through unchanged."""

_ADD, _MUL = LrpRules.add, LrpRules.scale
RULES: dict[Callable[..., Any], Callable[..., Tensor]] = {
    F.linear: LrpRules.linear,
    torch.addmm: LrpRules.addmm,
    torch.matmul: LrpRules.matmul, T.matmul: LrpRules.matmul, T.__matmul__: LrpRules.matmul,
    torch.bmm: LrpRules.matmul, T.bmm: LrpRules.matmul,
    torch.add: _ADD, T.add: _ADD, T.__add__: _ADD, T.__radd__: _ADD, T.__iadd__: _ADD,
    torch.mul: _MUL, T.mul: _MUL, T.__mul__: _MUL, T.__rmul__: _MUL,
    torch.div: LrpRules.divide, T.div: LrpRules.divide, T.__truediv__: LrpRules.divide,
    F.softmax: LrpRules.softmax, torch.softmax: LrpRules.softmax, T.softmax: LrpRules.softmax,
}  # fmt: skip

"""Base of the function modes that replace backward rules: rule lookup, hooks, operation sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
from torch.overrides import TorchFunctionMode, resolve_name

from faithbench.core.errors import CannotServeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


Operation = Callable[..., Any]
Curve = Callable[[Tensor], Tensor]


class RuleMode(TorchFunctionMode):
    """Give every call on the way of gradients its rule: operations and activation modules.

    A subclass lists its `rules`, each called as rule(mode, operation, *arguments), and says in
    `curve` what becomes of element-wise functions; `name` is what messages call its rules.
    """

    name = "backward"
    rules: ClassVar[Mapping[Operation, Callable[..., Any]]] = {}

    def __init__(self) -> None:
        super().__init__()
        self._silent = 0
        self._model_type = ""

    def __torch_function__(
        self,
        func: Operation,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace one call."""
        kwargs = kwargs or {}
        if self._silent or needs_no_rule(func, (*args, *kwargs.values())):
            return func(*args, **kwargs)
        return self.replace(func, args, kwargs)

    def replace(self, func: Operation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value of one operation, with a backward rule of its own."""
        rule = self.rules.get(func)
        if rule is None:
            raise self.missing(func)
        return rule(self, func, *args, **kwargs)

    def curve(self, function: Curve, x: Tensor, value: Tensor) -> Tensor:
        """Return the value f(x) of an element-wise function, with a backward rule of its own."""
        raise NotImplementedError

    def elementwise(self, func: Operation, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Apply the rule of element-wise functions to an operation."""

        def function(x: Tensor) -> Tensor:
            return self.keep(func, x, *args, **kwargs)

        return self.curve(function, x, function(x.detach()))

    def keep(self, func: Operation, *args: Any, **kwargs: Any) -> Tensor:
        """Leave an operation and its gradient as they are."""
        result: Tensor = func(*args, **kwargs)
        return result

    def missing(self, what: Operation | str) -> CannotServeError:
        """Return the error that names an operation without a rule."""
        name = what if isinstance(what, str) else resolve_name(what) or str(what)
        return CannotServeError(
            f"no {self.name} rule for {name}, which a {self._model_type} model computes; choose a "
            "gradient or perturbation explainer"
        )

    @contextmanager
    def watch(self, network: PreTrainedModel) -> Iterator[None]:
        """Treat each activation module as one element-wise operation, however it is written."""
        self._model_type = str(network.config.model_type)
        handles = []
        for module in network.modules():
            if type(module) in activation_classes():
                handles.append(module.register_forward_pre_hook(self._enter))
                handles.append(module.register_forward_hook(self._leave))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, _module: torch.nn.Module, _args: Any) -> None:
        self._silent += 1

    def _leave(self, module: torch.nn.Module, args: Any, output: Tensor) -> Tensor:
        self._silent -= 1
        if self._silent or not args[0].requires_grad:
            return output
        # The rule may call the module again for its derivative: no rule inside that call.
        self._silent += 1
        result = self.curve(module.forward, args[0], output.detach())
        self._silent -= 1
        return result


def needs_no_rule(func: Operation, values: Sequence[Any]) -> bool:
    """Return whether an operation needs no rule: no gradient passes, or it passes unchanged."""
    # Attributes such as x.shape arrive here as the getter of their descriptor.
    asks = getattr(func, "__name__", "") == "__get__"
    return asks or func in SHAPE_ONLY or not on_path(values)


def on_path(values: Sequence[Any]) -> bool:
    """Return whether a gradient could flow into any of these values."""
    return any(
        v.requires_grad if isinstance(v, Tensor) else isinstance(v, list | tuple) and on_path(v)
        for v in values
    )


def activation_classes() -> frozenset[type]:
    """Return every activation class that transformers configurations can name."""
    from transformers.activations import ACT2CLS

    classes: list[Any] = list(ACT2CLS.values())
    return frozenset(c[0] if isinstance(c, tuple) else c for c in classes)


def widen(scores: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Return scores in the type that a softmax asks for, never below their own precision.

    A float32 softmax asked for by half-precision code must not cost float64 its digits.
    """
    return scores.to(torch.promote_types(dtype or scores.dtype, scores.dtype))


class SlopeRule(Function):
    """Take an element-wise value that was computed elsewhere; gradients get the given slope."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, value: Tensor, slope: Tensor) -> Tensor:
        """Return the value."""
        ctx.save_for_backward(slope)
        ctx.dtype = x.dtype
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Return gradient times slope."""
        (slope,) = ctx.saved_tensors
        return (gradient * slope).to(ctx.dtype), None, None


def derivative(function: Curve, x: Tensor) -> Tensor:
    """Return the derivative of an element-wise function at x."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(leaf).sum(), leaf)
    return slope


T = torch.Tensor
SHAPE_ONLY: set[Operation] = {
    T.view, T.reshape, T.transpose, T.permute, T.contiguous, T.expand, T.squeeze, T.unsqueeze,
    T.flatten, T.split, T.chunk, T.unbind, T.__getitem__, T.size, T.dim, T.detach, T.clone,
    T.is_contiguous, T.stride, T.numel, T.data_ptr, T.get_device, T.__len__,
    T.new_zeros, T.new_ones, torch.zeros_like, torch.is_tensor,
    torch.reshape, torch.transpose, torch.permute, torch.cat, torch.split, torch.chunk,
    torch.squeeze, torch.unsqueeze, torch.flatten,
}  # fmt: skip
"""Operations that move gradients without changing them, and questions about a tensor."""

SAME_TENSOR: set[Operation] = {F.dropout, torch.dropout, T.to, T.type, T.type_as, T.float, T.double}
"""Operations that change nothing in evaluation mode but perhaps the type."""

SUMS: set[Operation] = {
    torch.add, T.add, T.__add__, T.__radd__, T.__iadd__,
    torch.sub, T.sub, T.__sub__, T.__rsub__, torch.neg, T.neg, T.__neg__,
    torch.sum, T.sum, torch.mean, T.mean,
}  # fmt: skip
"""Operations that are linear in everything they are given."""

LAYERS: set[Operation] = {F.linear, torch.addmm}
PRODUCTS: set[Operation] = {torch.mul, T.mul, T.__mul__, T.__rmul__}
MATMULS: set[Operation] = {torch.matmul, T.matmul, T.__matmul__, torch.bmm, T.bmm}
QUOTIENTS: set[Operation] = {torch.div, T.div, T.__truediv__}
SOFTMAXES: set[Operation] = {F.softmax, torch.softmax, T.softmax}
ELEMENTWISE: set[Operation] = {
    F.gelu, F.relu, F.silu, F.tanh, F.leaky_relu, F.elu, F.mish,
    torch.tanh, torch.relu, T.tanh, T.relu,
}  # fmt: skip
"""Functions of one tensor, entry by entry, that are 0 at 0."""

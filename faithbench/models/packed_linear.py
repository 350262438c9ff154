"""Linear layers packed for oneDNN: joined, and fused with the operation after them.

oneDNN multiplies fastest by weights in a blocked layout of its own. PyTorch reorders them at
every call; here they are reordered once, and GELU or an addition runs on each output block
while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Dense:
    """A linear layer, followed by nothing, by GELU, or by an addition."""

    weight: Tensor
    bias: Tensor
    packed: bool

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the layer to `x` [tokens, inputs]."""
        if self.packed:
            return _pointwise(x, self.weight, self.bias, "none", [], "")
        return F.linear(x, self.weight, self.bias)

    def activated(self, x: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the layer and the activation, fused if that is GELU and the layer is packed."""
        # transformers wraps F.gelu in a module that keeps it as `act`; other forms of GELU, such
        # as the tanh approximation, are not the one that oneDNN fuses.
        if self.packed and getattr(activation, "act", activation) is F.gelu:
            return _pointwise(x, self.weight, self.bias, "gelu", [], "none")
        return activation(self(x))

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """Apply the layer to `x`, and add `other`."""
        if self.packed:
            summed: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
                x, other, self.weight, self.bias, "add"
            )
            return summed
        # The product is accumulated into the sum that is there: one temporary instead of two.
        return torch.add(other, self.bias).addmm_(x, self.weight.t())


def join_linear(*layers: nn.Module, pack: bool) -> Dense:
    """Join plain linear layers into one; `pack` it for the CPU where that is faster."""
    if any(type(layer) is not nn.Linear for layer in layers):
        raise AttributeError("expected plain linear layers")  # e.g. an adapter not merged
    with torch.no_grad():
        weight = torch.cat([layer.weight for layer in layers if isinstance(layer, nn.Linear)])
        bias = torch.cat([layer.bias for layer in layers if isinstance(layer, nn.Linear)])
        packed = pack and packs(weight)
        if packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    return Dense(weight, bias, packed)


def packs(weight: Tensor) -> bool:
    """Return whether PyTorch can pack a weight and gains by it: without AVX-512 it loses."""
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _pointwise(
    x: Tensor, weight: Tensor, bias: Tensor, name: str, a: list[float], b: str
) -> Tensor:
    """Call oneDNN's linear layer with an operation on its output; `a` and `b` configure that."""
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, a, b)
    return result

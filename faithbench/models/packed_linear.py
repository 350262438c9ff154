"""Linear layers of a shorter way: joined, and packed and fused where that is faster."""

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
        """Apply it to `x` [tokens, inputs]."""
        if self.packed:
            return _pointwise(x, self.weight, self.bias, "none", [], "")
        return F.linear(x, self.weight, self.bias)

    def activated(self, x: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply it and the activation, in one step where that is GELU and the layer is packed."""
        if self.packed and getattr(activation, "act", activation) is F.gelu:
            return _pointwise(x, self.weight, self.bias, "gelu", [], "none")
        return activation(self(x))

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        """Apply it to `x`, and add `other`."""
        if self.packed:
            summed: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
                x, other, self.weight, self.bias, "add"
            )
            return summed
        return torch.add(other, self.bias).addmm_(x, self.weight.t())  # no copy of the bias


def join_linear(*layers: nn.Module, pack: bool) -> Dense:
    """Join plain linear layers into one; `pack` it for the CPU where that is faster."""
    if any(type(layer) is not nn.Linear for layer in layers):
        raise AttributeError("expected plain linear layers")  # an adapter not merged, say
    with torch.no_grad():
        weight = torch.cat([layer.weight for layer in layers if isinstance(layer, nn.Linear)])
        bias = torch.cat([layer.bias for layer in layers if isinstance(layer, nn.Linear)])
        packed = pack and packs(weight)
        if packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    return Dense(weight, bias, packed)


def packs(weight: Tensor) -> bool:
    """Tell whether PyTorch can pack a weight, and gains by it: without AVX-512 it loses."""
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
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, a, b)
    return found

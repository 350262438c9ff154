"""A device without float64, made of CPU tensors: what an Apple GPU refuses is refused here.

Its tensors say that they are elsewhere and hold their values on the CPU. Operations run there,
and their results are of the device again. As with a real one, float64 fails, and so do
operations on tensors of two devices; only `cpu()` and `to` go from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")


class Small(torch.Tensor):
    """A tensor of the device; `values` are on the CPU."""

    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> Small:
        if values.dtype == torch.float64:
            raise TypeError("this device has no float64")
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            values.size(),
            strides=values.stride(),
            storage_offset=values.storage_offset(),
            dtype=values.dtype,
            device=DEVICE,
        )
        made.values = values.detach()
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Small({tuple(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


@contextmanager
def small_device() -> Iterator[None]:
    """Let code make tensors on the device."""
    with pytest.MonkeyPatch.context() as patch, _Lists(), _Operations():
        # Tensors of two parts cannot be views inside inference_mode; no_grad gives the same values.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        yield


class _Lists(TorchFunctionMode):
    """Makes tensors of lists, which torch would do on the meta device without their values."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and kwargs.get("device") is not None:
            on_host = {**kwargs, "device": torch.device("cpu")}
            return func(*args, **on_host).to(kwargs["device"])
        if func is torch.Tensor.tolist and isinstance(args[0], Small):
            return args[0].values.tolist()  # torch refuses it to every class but its own
        return func(*args, **kwargs)


class _Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


# Moving a tensor, and filling one from the other side, are the ways between devices.
_BETWEEN = ("aten::_to_copy", "aten::copy_")


def run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run an operation where its tensors are, and refuse what a device refuses."""
    name = func._schema.name
    tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
    here = [t for t in tensors if isinstance(t, Small)]
    # Numbers wrapped in a tensor, and indices, may come from the host.
    strange = [t for t in tensors if not isinstance(t, Small) and t.dim() > 0]
    if here and strange and name not in _BETWEEN and not name.startswith("aten::index"):
        raise RuntimeError(f"{name}: expected all tensors on one device, found two")
    asked = kwargs.get("device")
    placed = bool(here) if asked is None else torch.device(asked) == DEVICE
    if name == "aten::copy_":
        placed = isinstance(args[0], Small)
    if asked is not None:
        kwargs = {**kwargs, "device": torch.device("cpu")}
    if placed and kwargs.get("dtype") == torch.float64:
        raise TypeError(f"{name}: this device has no float64")
    if name == "aten::_to_copy" and here and not placed and kwargs.get("dtype") == torch.float64:
        raise TypeError(f"{name}: this device cannot convert to float64 on the way")
    plain = tree_map_only(Small, lambda t: t.values, (args, kwargs))
    out = func(*plain[0], **plain[1])
    if func._schema.is_mutable and here:
        return args[0] if isinstance(args[0], torch.Tensor) else out
    return tree_map_only(torch.Tensor, Small, out) if placed else out


def on_small_device(network: torch.nn.Module) -> torch.nn.Module:
    """Move a network's weights, in place."""
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            small = torch.nn.Parameter(Small(parameter.detach()), requires_grad=False)
            setattr(module, name, small)
        for name, buffer in list(module.named_buffers(recurse=False)):
            setattr(module, name, Small(buffer))
    return network

"""A device made of CPU tensors: what a GPU refuses is refused here.

Its tensors say that they are elsewhere and hold their values on the CPU. Operations run there,
and their results are of the device again. As with a real one, operations on tensors of two devices
fail, and so does a look at values that were not copied; only `cpu()` and `to` go from one to the
other. Like an Apple GPU, it has no float64 unless it is given some.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")


class Small(torch.Tensor):
    """A tensor of the device; `values` are on the CPU."""

    has_float64: ClassVar[bool] = False
    values: torch.Tensor

    @staticmethod
    def __new__(cls, values: torch.Tensor) -> Small:
        if lacks(values.dtype):
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


def lacks(dtype: torch.dtype | None) -> bool:
    """Return whether the device has no numbers of this type."""
    return dtype == torch.float64 and not Small.has_float64


@contextmanager
def small_device(*, float64: bool = False) -> Iterator[None]:
    """Let code make tensors on the device."""
    with pytest.MonkeyPatch.context() as patch, _Lists(), _Operations():
        patch.setattr(Small, "has_float64", float64)
        # Tensors of two parts cannot be views inside inference_mode; no_grad gives the same values.
        patch.setattr(torch, "inference_mode", torch.no_grad)
        # Modules then convert to new parameters: set in place, these would keep their old values.
        patch.setattr(torch.__future__, "get_overwrite_module_params_on_conversion", lambda: True)
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
        if func is torch.Tensor.__getitem__:
            index = args[1] if isinstance(args[1], tuple) else (args[1],)
            return func(args[0], tuple(torch.tensor(i) if type(i) is list else i for i in index))
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
    if placed and lacks(kwargs.get("dtype")):
        raise TypeError(f"{name}: this device has no float64")
    if name == "aten::_to_copy" and here and not placed and lacks(kwargs.get("dtype")):
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

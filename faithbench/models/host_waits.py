"""Counts the places where the host waits for the device, on any device.

A GPU works while Python prepares what comes next, until Python asks for a value: then it runs dry.
Which calls ask for one does not depend on the device, so that waits can be counted on the CPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

# Their result, or its shape, depends on values. Inside `inference_mode` composite operations
# arrive whole (`item`), elsewhere as their parts (`_local_scalar_dense`), and never as both.
_VALUES = frozenset(
    (
        *("item", "_local_scalar_dense", "is_nonzero", "equal", "allclose"),
        *("nonzero", "nonzero_numpy", "argwhere", "masked_select", "bincount"),
        *("_unique", "_unique2", "unique_dim", "unique_consecutive", "_linalg_check_errors"),
    )
)
_INDEXING = frozenset(("index", "index_put", "index_put_", "_index_put_impl_"))
_PACKAGE = str(Path(__file__).parents[1])


@dataclass
class HostWaits:
    """The waits of a stretch of code, each as `operation at file:line`, and its operations."""

    places: list[str] = field(default_factory=list)
    operations: int = 0

    @property
    def count(self) -> int:
        """How often the host waited."""
        return len(self.places)

    def add(self, name: str) -> None:
        """Note a wait, at the innermost line of this package that led to it."""
        frame = sys._getframe(1)
        while frame is not None and not _is_ours(frame.f_code.co_filename):
            frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
        where = "?" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        self.places.append(f"{name} at {where}")


@contextmanager
def count_host_waits() -> Iterator[HostWaits]:
    """Count the waits and operations of what runs inside, in this thread."""
    waits = HostWaits()
    with _Transfers(waits), _Operations(waits):
        yield waits


def _is_ours(file: str) -> bool:
    return file.startswith(_PACKAGE) and file != __file__


class _Operations(TorchDispatchMode):
    """Sees every operation, those of backward passes included."""

    def __init__(self, waits: HostWaits) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's own
        self.waits = waits

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Count the operation, and note it if the host waits for it."""
        kwargs = kwargs or {}
        name = func._schema.name.removeprefix("aten::")
        self.waits.operations += 1
        if _asks_for_values(name, args, kwargs):
            self.waits.add(name)
        return func(*args, **kwargs)


class _Transfers(TorchFunctionMode):
    """Sees copies to the host, which are no operations where the host is the device."""

    def __init__(self, waits: HostWaits) -> None:
        super().__init__()
        self.waits = waits

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Note the call if it copies a tensor to the host."""
        kwargs = kwargs or {}
        if func in (torch.Tensor.cpu, torch.Tensor.tolist):
            self.waits.add(func.__name__)
        elif func is torch.Tensor.to and "cpu" in map(_text, (*args[1:], *kwargs.values())):
            self.waits.add("to")
        return func(*args, **kwargs)


def _asks_for_values(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether an operation needs values of its inputs on the host."""
    if name in _INDEXING:
        # A mask has as many entries as its values say; the host has to know how many.
        masks = (torch.bool, torch.uint8)
        return any(isinstance(index, torch.Tensor) and index.dtype in masks for index in args[1])
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    return name in _VALUES or (name == "where" and len(args) == 1)


def _text(argument: object) -> str:
    # A device that is given as an object is the tensors' own, which on the CPU is the host, too.
    return argument if isinstance(argument, str) else ""

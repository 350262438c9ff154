"""Passes that several explainers read: made once per batch, charged to everyone who reads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch

from faithbench.core.types import Batch
from faithbench.models.model import Model

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Held:
    """What was made, and how long that took."""

    value: Any
    seconds: float


# Batches are held, not their ids: a freed batch's id is soon another's.
_passes: WeakKeyDictionary[Model, dict[tuple[Batch, str], _Held]] = WeakKeyDictionary()


def shared(
    model: Model,
    batch: Batch,
    name: str,
    make: Callable[[], Value],
    *,
    forwards: int = 1,
    backwards: int = 1,
) -> Value:
    """Make a pass, or hand out the one of that name already made for this very batch.

    A reused pass is charged in full, seconds included, so that an explainer's cost does not
    depend on which others run side by side. `forwards` and `backwards` are per example.
    """
    held = _passes.setdefault(model, {})
    count = len(batch.ids)
    known = held.get((batch, name))
    if known is None:
        start = time.perf_counter()
        value = make()
        if model.device.type == "cuda":
            torch.cuda.synchronize(model.device)
        held[batch, name] = known = _Held(value, time.perf_counter() - start)
        spent = 0.0
    else:
        spent = known.seconds
    model.meter.charge(forwards=forwards * count, backwards=backwards * count, shared_seconds=spent)
    found: Value = known.value
    return found


def release(model: Model) -> None:
    """Free the shared passes; the run calls this when it leaves a chunk."""
    _passes.pop(model, None)


def per_output(model: Model, batch: Batch) -> tuple[Batch, ...]:
    """Split a question answerer's batch into one per output; the same objects every time."""
    if len(model.outputs) == 1:
        return (batch,)
    held = _passes.setdefault(model, {})
    known = held.get((batch, "heads"))
    if known is None:
        parts = tuple(
            replace(batch, output=output, targets=batch.targets[:, column])
            for column, output in enumerate(model.outputs)
        )
        held[batch, "heads"] = known = _Held(parts, 0.0)
    found: tuple[Batch, ...] = known.value
    return found

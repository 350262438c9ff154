"""The state of a run about one model: its engine, the passes explainers share, the meter.

Nothing is global: two sessions can be open in one process, and every worker process of a run
has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch

from faithbench.core.types import Batch
from faithbench.models.engine import BUDGET, Engine
from faithbench.models.meter import Meter
from faithbench.models.model import Model

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Pass:
    """A pass that was made, and how long that took."""

    value: Any
    seconds: float


class Session:
    """Owns a model's engine, shared passes and meter; explainers get it as first argument.

    `budget` is the largest number of padded tokens that go through the network at once.
    """

    def __init__(self, model: Model, budget: int = BUDGET) -> None:
        self.model = model
        self.meter = Meter()
        self.engine = Engine(model, budget, self.meter)
        # Keys hold the batch itself, not its id: the id of a freed batch is soon another's.
        self._passes: dict[tuple[Batch, str], _Pass] = {}
        self._per_output: dict[Batch, tuple[Batch, ...]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def share(
        self,
        batch: Batch,
        name: str,
        make: Callable[[], Value],
        *,
        forwards: int = 1,
        backwards: int = 1,
    ) -> Value:
        """Make a pass, or return the one of that name already made for this very batch.

        A reused pass is charged in full, seconds included, so that an explainer's cost does
        not depend on which others run in the same job. `forwards` and `backwards` are per example.
        """
        made = self._passes.get((batch, name))
        spared = 0.0 if made is None else made.seconds
        if made is None:
            start = time.perf_counter()
            value = make()
            self.synchronise()
            made = self._passes[batch, name] = _Pass(value, time.perf_counter() - start)
        count = len(batch.ids)
        self.meter.charge(
            forwards=forwards * count, backwards=backwards * count, shared_seconds=spared
        )
        shared: Value = made.value
        return shared

    def per_output(self, batch: Batch) -> tuple[Batch, ...]:
        """Split a batch into one per output that is explained; the same objects every time.

        They are keys of shared passes, so a second explainer must get the very same ones.
        """
        outputs = self.model.outputs
        has_choices = self.model.kind.has_choices
        if len(outputs) == 1 and not has_choices:
            return (batch,)
        if batch not in self._per_output:
            # The row of a choice has one logit, whichever choice it is.
            columns = [torch.zeros_like(batch.targets)] if has_choices else batch.targets.T
            self._per_output[batch] = tuple(
                replace(batch, output=output, targets=targets)
                for output, targets in zip(outputs, columns, strict=True)
            )
        return self._per_output[batch]

    def drop_passes(self) -> None:
        """Free the shared passes, which hold gradients of whole batches."""
        self._passes.clear()
        self._per_output.clear()

    def clear(self) -> None:
        """Drop the shared passes and the remembered rows; the next call starts from scratch."""
        self.drop_passes()
        self.engine.forget()

    def synchronise(self) -> None:
        """Wait for the device: CUDA calls return before their work is done, and clocks lie."""
        if self.model.device.type == "cuda":
            torch.cuda.synchronize(self.model.device)

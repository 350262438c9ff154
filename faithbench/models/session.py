"""The state of a run about one model: its engine, the passes explainers share, the meter.

Nothing is global: two sessions can be open in one process, and every worker process of a run
has its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np
import torch

from faithbench.core.types import Batch
from faithbench.models.devices import find_budget, memory_share, synchronise
from faithbench.models.engine import BUDGET, Engine
from faithbench.models.meter import Meter
from faithbench.models.model import Model
from faithbench.models.traits import Group, row_groups

Value = TypeVar("Value")


@dataclass(frozen=True)
class _Pass:
    """A pass that was made, and how long that took."""

    value: Any
    seconds: float


@dataclass(frozen=True, eq=False)
class Company:
    """Rows of a batch that may share a pass, by their numbers, and the batch that they make."""

    rows: tuple[int, ...]
    batch: Batch


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
        self._companies: dict[Batch, tuple[Company, ...]] = {}

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
        passes: int = 1,
    ) -> Value:
        """Make a pass, or return the one of that name already made for this very batch.

        A reused pass is charged in full, seconds included, so that an explainer's cost does
        not depend on which others run in the same job. `forwards` and `backwards` are per example;
        the second half of a pass is none of the `passes`.
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
            forwards=forwards * count,
            backwards=backwards * count,
            passes=passes,
            shared_seconds=spared,
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

    def companies(self, batch: Batch) -> tuple[Company, ...]:
        """Split a batch into parts that may share a pass; the same objects every time.

        Most networks take any batch as it is. The parts have no more padding than they need.
        """
        if batch not in self._companies:
            self._companies[batch] = _companies(self.model, batch)
        return self._companies[batch]

    def drop_passes(self) -> None:
        """Free the shared passes, which hold gradients of whole batches."""
        self._passes.clear()
        self._per_output.clear()
        self._companies.clear()

    def clear(self) -> None:
        """Drop the shared passes and the remembered rows; the next call starts from scratch."""
        self.drop_passes()
        self.engine.forget()

    def synchronise(self) -> None:
        """Wait for the device, so that a clock tells the truth."""
        synchronise(self.model.device)

    def tune(self) -> None:
        """Give the engine the token budget that is quickest on its device.

        The CPU's is measured and fixed: there, time on a busy machine would decide. Only the
        engine's rows go by it. Batches of white-box passes keep their size, since they take memory
        that grows with the square of a text's length.
        """
        if self.model.device.type == "cpu":
            return
        probe = Engine(self.model, self.engine.budget)
        self.engine.budget = find_budget(
            lambda budget: rows_per_second(probe, budget),
            lambda: memory_share(self.model.device),
            self.engine.budget,
        )


PROBED = 32
"""Length in tokens of the rows that a device is tried with: that of a sentence."""


def rows_per_second(engine: Engine, budget: int, passes: int = 2) -> float:
    """Return how many rows of random tokens an engine computes in a second, once warm."""
    model = engine.model
    size = min(PROBED, model.max_tokens)
    count = passes * max(1, budget // size)
    draw = np.random.default_rng(0)
    ids = draw.integers(int(model.network.config.vocab_size), size=(count, size))
    rows = [(row, np.zeros(size, dtype=np.int64)) for row in ids]
    before, engine.budget = engine.budget, budget
    try:
        for _ in range(2):  # the first call warms up: memory is taken, kernels are chosen
            engine.forget()
            start = time.perf_counter()
            engine.log_probabilities(rows)
            seconds = time.perf_counter() - start
    finally:
        engine.budget = before
        engine.forget()
    return count / seconds


def moved(batch: Batch, device: torch.device) -> Batch:
    """Return the batch on a device; the same object if it is there already."""
    if batch.ids.device == device:
        return batch
    tensors = ("ids", "types", "attention", "erasable", "targets")
    return replace(batch, **{name: getattr(batch, name).to(device) for name in tensors})


def _companies(model: Model, batch: Batch) -> tuple[Company, ...]:
    group_of = row_groups(model.network)
    groups: dict[Group, list[int]] = {}
    for row, encoding in enumerate(batch.encodings):
        groups.setdefault(group_of(encoding.ids), []).append(row)
    if len(groups) == 1:
        return (Company(tuple(range(len(batch.encodings))), batch),)
    return tuple(Company(tuple(rows), _part(batch, rows)) for rows in groups.values())


def _part(batch: Batch, rows: list[int]) -> Batch:
    """Return some rows of a batch, as wide as the longest of them."""
    width = max(len(batch.encodings[row].ids) for row in rows)
    return replace(
        batch,
        encodings=tuple(batch.encodings[row] for row in rows),
        ids=batch.ids[rows, :width],
        types=batch.types[rows, :width],
        attention=batch.attention[rows, :width],
        erasable=batch.erasable[rows, :width],
        targets=batch.targets[rows],
        seeds=tuple(batch.seeds[row] for row in rows),
    )

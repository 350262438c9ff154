"""Attention that is trained to differ from another model's (Wiegreffe and Pinter 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.model import Model, load_model
from faithbench.training.attention_row import AttentionRow
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingBatch, TrainingSet, collate_items
from faithbench.training.objectives import objective
from faithbench.training.objectives.protocol import Capture, ForwardPass, Objective

CAPTURES: frozenset[Capture] = frozenset({"attentions"})
TOGETHER = 64
"""Training texts whose attention the other model is asked for at once."""


@objective("divergence", papers=("wiegreffe2019attention", "meister2021sparse"))
@dataclass(frozen=True)
class Divergence:
    """Move the attention that the classifier reads away from that of a model in a folder.

    The loss is ln 2 minus the Jensen-Shannon divergence of the two, times `weight`: 0 where they
    share no word. The divergence has an end, unlike the Kullback-Leibler divergence that the
    paper maximises, which is infinite for sparse attention. The other model must have been trained
    on the same words, as one of the same task with the same `--vectors`.
    """

    model: str = ""
    weight: float = 1.0

    auxiliary: ClassVar[bool] = True
    captures: ClassVar[frozenset[Capture]] = CAPTURES
    folder_settings: ClassVar[tuple[str, ...]] = ("model",)

    def prepare(self, model: Model, training_set: TrainingSet) -> Objective:
        """Ask the other model for its attention to every training text."""
        if not self.model:
            raise FaithbenchError(
                "divergence needs a model to differ from; give divergence:model=FOLDER"
            )
        other = load_model(
            self.model, labels=model.labels, kind=model.kind.name, device=model.device.type
        )
        if other.tokenizer.get_vocab() != model.tokenizer.get_vocab():
            raise FaithbenchError(
                f"divergence: model {Path(self.model).name!r} reads other tokens than the one in "
                "training; choose one of the same task, with the same --vectors"
            )
        make_readable(other, CAPTURES)
        items = training_set.items
        row = AttentionRow.of(other, items[0])
        theirs: dict[int, torch.Tensor] = {}
        with torch.no_grad():
            for start in range(0, len(items), TOGETHER):
                part = items[start : start + TOGETHER]
                batch = collate_items(other, part, None)
                attention = row.read(forward(other, batch, CAPTURES).attentions, batch.attention)
                for item, weights in zip(part, attention, strict=True):
                    theirs[id(item.encoding)] = weights[: len(item.encoding.ids)].clone()
        return _Prepared(self.weight, theirs, AttentionRow.of(model, items[0]))

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Refuse: the other model is asked once, by `prepare`."""
        raise FaithbenchError("divergence has to be prepared with its training set first")


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The loss of one training: the other model's attention to each encoding, by its id."""

    weight: float
    theirs: Mapping[int, torch.Tensor]
    row: AttentionRow

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return the weighted loss of a batch."""
        ours = self.row.read(forward.attentions, batch.attention)
        theirs = torch.zeros_like(ours)
        for index, item in enumerate(batch.items):
            weights = self.theirs[id(item.encoding)]
            theirs[index, : len(weights)] = weights
        return self.weight * (math.log(2) - jensen_shannon(ours, theirs).mean())


def jensen_shannon(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Return the Jensen-Shannon divergence of each row, in nats: from 0 to ln 2."""
    middle = (first + second) / 2
    return (_entropy(middle) * 2 - _entropy(first) - _entropy(second)) / 2


def _entropy(shares: torch.Tensor) -> torch.Tensor:
    # 0 ln 0 is 0; the logarithm of 1 in its place has a finite gradient.
    logs = torch.where(shares > 0, shares, 1).log()
    return -(shares * logs).sum(dim=-1)

"""Neutral labels (L2E, Situ et al., ACL 2021, section 5): no evidence, no verdict."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Bools, Encoding
from faithbench.data.rationales import rationale_tokens, without_rationale
from faithbench.models.model import Model
from faithbench.training.items import TrainingBatch, TrainingItem, TrainingSet
from faithbench.training.objectives import objective
from faithbench.training.objectives.protocol import ForwardPass


@objective("neutral", papers=("situ2021learning",))
@dataclass(frozen=True)
class Neutral:
    """Teach that a text without its rationale is neutral, a class of its own.

    Each training text with a rationale has a copy in which the rationale's tokens are masked. The
    rationale is then the ground truth of what such a model must look at. A text whose rationale
    lies wholly beyond the tokens that the model reads gets no copy.

    The paper masks nothing else, so that the mask alone gives a copy away. With `others`, a second
    copy has as many tokens masked outside the rationale, and keeps its class.
    """

    others: bool = False

    auxiliary: ClassVar[bool] = True
    needs_rationale: ClassVar[bool] = True
    added_label: ClassVar[str] = "neutral"

    def check(self, model: Model, training_set: TrainingSet) -> None:
        """Refuse a task without classes."""
        if not model.kind.has_classes:
            raise FaithbenchError(
                f"neutral adds a class, and a {model.kind.model_noun} has none; "
                "choose a task with classes"
            )

    def more_items(self, model: Model, item: TrainingItem, label: int) -> Iterable[TrainingItem]:
        """Return the copy with the rationale masked, if there is anything to mask."""
        kept = without_rationale(item.encoding)
        if kept is None:
            return []
        copies = [_masked(model, item, kept, "neutral", (label,))]
        if self.others:
            copies.append(_masked(model, item, without_others(item.encoding), "others"))
        return copies

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return 0: the copies are items, which the task's own loss counts as it does others."""
        return forward.logits[0].new_zeros(())


def without_others(encoding: Encoding) -> Bools:
    """Return the keep-mask that erases as many tokens outside the rationale as are inside.

    Fewer, where there are not as many. Which ones depends on the example's id alone.
    """
    marked = rationale_tokens(encoding) & encoding.erasable
    free = np.flatnonzero(encoding.erasable & ~marked)
    draw = random.Random(f"others:{encoding.example.id}")
    erased = draw.sample(free.tolist(), min(len(free), int(marked.sum())))
    kept = np.ones(len(encoding.ids), dtype=bool)
    kept[erased] = False
    return kept


def _masked(
    model: Model,
    item: TrainingItem,
    kept: Bools,
    name: str,
    targets: tuple[int, ...] | None = None,
) -> TrainingItem:
    """Return a copy of an item with all but the kept tokens masked, of its class or another."""
    ids = np.where(kept, item.encoding.ids, model.erasure_id("mask"))
    example = replace(item.encoding.example, id=f"{item.encoding.example.id}#{name}")
    return TrainingItem(replace(item.encoding, ids=ids, example=example), targets or item.targets)

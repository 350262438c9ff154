"""What an objective is: the call that all of them have, and their optional members.

The optional members are looked up here and nowhere else: training calls the functions at the end
of this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, runtime_checkable

from faithbench.core.files import cached_sha256

if TYPE_CHECKING:
    import torch

    from faithbench.models.model import Model
    from faithbench.training.items import TrainingBatch, TrainingItem, TrainingSet

Capture = Literal["attentions", "levels"]


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """The outputs of the network in training mode, with their graph.

    `logits` has one tensor per output: [items, classes] of a classifier, [items, tokens] for the
    first and for the last token of a question answerer. The rest is there if an objective captures
    it. `attentions` are the probabilities of each block, [items, heads, queries, keys]. `levels`
    are the representations that logits are computed from, by name: `word` (the word embeddings)
    and `intermediate`, [items, tokens, width], and, of architectures that have it, `decision`,
    [items, tokens].
    """

    logits: tuple[torch.Tensor, ...]
    attentions: tuple[torch.Tensor, ...] = ()
    levels: Mapping[str, torch.Tensor] = field(default_factory=dict)


class Objective(Protocol):
    """A frozen dataclass whose fields are its settings; returns the loss of a batch.

    It draws no random numbers besides torch's, which checkpoints restore, and keeps nothing
    between batches, so that a killed training ends with the weights of an uninterrupted one.
    """

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return the loss to minimise, a scalar with its graph."""
        ...


@runtime_checkable
class Auxiliary(Protocol):
    """Has `auxiliary: ClassVar[bool]`: True if its loss is added to that of the task.

    Training then minimises cross-entropy as well, unless another loss of the task is named.
    """

    auxiliary: bool


@runtime_checkable
class Weighted(Protocol):
    """Has a setting `weight`, the factor of its loss, which its call has applied already.

    With weight 0, training does not run it at all, and ends with the bits of one without it.
    """

    weight: float


@runtime_checkable
class Capturing(Protocol):
    """Has `captures`: which values of the forward pass it reads besides logits.

    Both make the network compute attention step by step. Gradients with respect to a level, by
    `torch.autograd.grad(..., create_graph=True)`, can be trained on.
    """

    captures: ClassVar[frozenset[Capture]]


@runtime_checkable
class NeedsRationale(Protocol):
    """Has `needs_rationale: ClassVar[bool]`: True if it learns from rationales.

    Training refuses a training set without any, and counts those that its model cannot read.
    """

    needs_rationale: bool


@runtime_checkable
class HasFolders(Protocol):
    """Has `folder_settings`: its settings that name the folder of a model.

    Cards keep the last part of them, and the digest of the weights there: where a folder lies on
    somebody's machine does not belong in a file.
    """

    folder_settings: ClassVar[tuple[str, ...]]


@runtime_checkable
class Checking(Protocol):
    """Refuses a model or training set that it cannot serve, before the first step."""

    def check(self, model: Model, training_set: TrainingSet) -> None:
        """Raise FaithbenchError if this training makes no sense."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """Computes once, before the first step, what each batch would otherwise compute again."""

    def prepare(self, model: Model, training_set: TrainingSet) -> Objective:
        """Return the loss of this training."""
        ...


@runtime_checkable
class AddingItems(Protocol):
    """Adds a class to those of the task, and items, those of that class among them."""

    added_label: ClassVar[str]

    def more_items(self, model: Model, item: TrainingItem, label: int) -> Iterable[TrainingItem]:
        """Return the items that come from an item; the added class is `label` by number."""
        ...


def is_auxiliary(loss: object) -> bool:
    """Return whether a loss is added to the task's own; by default it is the task's own."""
    return isinstance(loss, Auxiliary) and loss.auxiliary


def weight_of(loss: object) -> float:
    """Return the factor of a loss, 1 if it has none."""
    return loss.weight if isinstance(loss, Weighted) else 1.0


def captures_of(loss: object) -> frozenset[Capture]:
    """Return what a loss reads besides logits."""
    return loss.captures if isinstance(loss, Capturing) else frozenset()


def needs_rationale(loss: object) -> bool:
    """Return whether a loss learns from rationales."""
    return isinstance(loss, NeedsRationale) and loss.needs_rationale


def folder_facts(loss: object) -> dict[str, str]:
    """Return what a card says of the folders that a loss reads: last part, and digest."""
    facts = {}
    for name in loss.folder_settings if isinstance(loss, HasFolders) else ():
        setting: str = getattr(loss, name)
        facts[name] = Path(setting).name
        weights = Path(setting) / "model.safetensors"
        if setting and weights.is_file():  # no folder is not the one we are in
            facts[f"{name}_sha256"] = cached_sha256(weights)
    return facts


def prepared(loss: Objective, model: Model, training_set: TrainingSet) -> Objective:
    """Let a loss refuse a training, or get ready for it."""
    if isinstance(loss, Checking):
        loss.check(model, training_set)
    return loss.prepare(model, training_set) if isinstance(loss, Preparing) else loss


def added_labels(losses: Iterable[object]) -> tuple[str, ...]:
    """Return the classes that losses add to those of the task."""
    return tuple(loss.added_label for loss in losses if isinstance(loss, AddingItems))


def added_items(
    losses: Iterable[object], model: Model, item: TrainingItem, classes: int
) -> list[TrainingItem]:
    """Return the items that losses make of one; the task itself has `classes` classes."""
    adding = [loss for loss in losses if isinstance(loss, AddingItems)]
    return [
        more
        for number, loss in enumerate(adding)
        for more in loss.more_items(model, item, classes + number)
    ]

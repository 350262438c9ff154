"""From the examples of a split to training batches: targets, class weights and order."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Example, Progress
from faithbench.data.dataset import Dataset
from faithbench.data.rationales import overlaps
from faithbench.data.sentences import sentence_spans
from faithbench.models.encoding import encode, pad_rows
from faithbench.models.model import Model
from faithbench.training.objectives.protocol import added_items, added_labels
from faithbench.training.recipe import Recipe

Item = TypeVar("Item")

UNBALANCED = 1.5
"""Classes are weighted once the largest has more than this many times the smallest's rows."""

_POOL = 50
"""Batches whose items are sorted by length together."""


@dataclass(frozen=True)
class TrainingItem:
    """One example and its targets: a class, or the first and last token of an answer."""

    encoding: Encoding
    targets: tuple[int, ...]


@dataclass(frozen=True)
class TrainingSet:
    """The items of a split, the weights of its classes, and the number of questions left out.

    `weights` is None for balanced classes and for questions; `left_out` counts by reason.
    """

    items: tuple[TrainingItem, ...]
    weights: tuple[float, ...] | None
    left_out: dict[str, int]


@dataclass(frozen=True, eq=False)
class TrainingBatch:
    """The items of one optimizer step, padded on the right; tensors have one row per item.

    `attention` is 0 at padding. `targets` has one column per output of the model, and
    `class_weights` one entry per class.
    """

    items: tuple[TrainingItem, ...]
    ids: torch.Tensor
    types: torch.Tensor
    attention: torch.Tensor
    targets: torch.Tensor
    class_weights: torch.Tensor | None


def make_training_set(
    model: Model,
    data: Dataset,
    progress: Progress,
    excerpts: Sequence[int] = (),
    *,
    alone: bool = False,
    losses: Sequence[object] = (),
) -> TrainingSet:
    """Encode a split; leave out questions whose answer is cut off or splits a token.

    Of `losses`, those that add items do; the task's labels then end with theirs.
    """
    kind = model.kind
    # An excerpt may not hold the answer that its question asks for.
    reaches = () if kind.has_answers else excerpts
    examples = list(with_excerpts(data.examples, reaches, alone=alone and bool(reaches)))
    items: list[TrainingItem] = []
    own_classes = len(data.task.labels) - len(added_labels(losses))
    left_out = Counter(dict.fromkeys(kind.unreadable_reasons, 0))
    for number, example in enumerate(examples, start=1):
        encoding = encode(model, example, data.task.evidence)
        targets = kind.training_targets(encoding)
        if targets is not None:
            item = TrainingItem(encoding, targets)
            items += [item, *added_items(losses, model, item, own_classes)]
        else:
            left_out[kind.why_unreadable(encoding)] += 1
        if number % 1000 == 0 or number == len(examples):
            progress(f"reading {data.split}", number, len(examples))
    if not items:
        raise FaithbenchError(
            f"none of the {len(data.examples)} answers of split {data.split!r} is among the "
            "tokens the model reads; raise --max-tokens"
        )
    weights = None if kind.per_position else class_weights(items, len(data.task.labels))
    return TrainingSet(tuple(items), weights, dict(left_out))


def class_weights(items: Sequence[TrainingItem], classes: int) -> tuple[float, ...] | None:
    """Return n / (classes * count) per class when the classes are unbalanced, else None.

    Also None where a class has no item, and so no finite weight.
    """
    counts = Counter(item.targets[0] for item in items)
    if len(counts) < classes:
        return None
    if max(counts.values()) <= UNBALANCED * min(counts.values()):
        return None
    return tuple(round(len(items) / (classes * counts[k]), 6) for k in range(classes))


def batches(
    items: Sequence[TrainingItem], recipe: Recipe, epoch: int
) -> list[Sequence[TrainingItem]]:
    """Shuffle the items and cut them into batches of similar length."""
    draw = f"{recipe.seed}:{epoch}"
    return cut_by_length(items, lambda item: len(item.encoding.ids), recipe.batch_size, draw)


def cut_by_length(
    items: Sequence[Item], length: Callable[[Item], int], size: int, seed: str
) -> list[Sequence[Item]]:
    """Shuffle items, whatever they are, and cut them into batches of similar length."""
    # A string seeds by its digest: the order is the same in every process.
    draw = random.Random(seed)
    order = draw.sample(list(items), len(items))
    cut: list[Sequence[Item]] = []
    # Sorting inside pools saves padding; sorting all items would make the same batches each epoch.
    for start in range(0, len(order), _POOL * size):
        pool = sorted(order[start : start + _POOL * size], key=length)
        cut += [pool[i : i + size] for i in range(0, len(pool), size)]
    draw.shuffle(cut)
    return cut


def collate_items(
    model: Model, items: Sequence[TrainingItem], weights: tuple[float, ...] | None
) -> TrainingBatch:
    """Pad the items of a batch and put them on the model's device."""
    rows = [(item.encoding.ids, item.encoding.types) for item in items]
    arrays = pad_rows(rows, int(model.network.config.pad_token_id))
    ids, types, attention = (torch.tensor(array, device=model.device) for array in arrays)
    return TrainingBatch(
        items=tuple(items),
        ids=ids,
        types=types,
        attention=attention,
        targets=torch.tensor([item.targets for item in items], device=model.device),
        class_weights=None if weights is None else torch.tensor(weights, device=model.device),
    )


def schedule(step: int, total: int, warmup: float) -> float:
    """Return the share of the learning rate at a step, counted from 0.

    It rises linearly over the warm-up share of the steps, then falls linearly to 0.
    """
    rising = max(1, int(warmup * total))
    return (step + 1) / rising if step < rising else (total - step) / max(1, total - rising)


def with_excerpts(
    examples: Sequence[Example], reaches: Sequence[int], *, alone: bool = False
) -> Iterator[Example]:
    """Yield each example, then its excerpts that differ from it and from each other.

    Where a document is long and evidence rare, a few hundred documents do not show a small
    encoder what to look for; excerpts do, and cost little. With excerpts `alone`, only documents
    without any excerpt are kept.
    """
    for example in examples:
        texts: set[str] = set()
        if not alone or not excerpt(example, min(reaches, default=0)):
            yield example
            texts.add(example.text)
        for reach in reaches:
            text = excerpt(example, reach)
            if text and text not in texts:
                texts.add(text)
                yield replace(example, id=f"{example.id}#{reach}", text=text, rationale=None)


def excerpt(example: Example, reach: int) -> str:
    """Return the sentences that hold a rationale, and `reach` sentences before and after each."""
    spans = sentence_spans(example.text)
    marked = overlaps(spans, example.rationale or ()).nonzero()[0].tolist()
    wanted = {i for center in marked for i in range(center - reach, center + reach + 1)}
    return " ".join(
        example.text[start:end].strip() for i, (start, end) in enumerate(spans) if i in wanted
    )

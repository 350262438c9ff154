"""What determines a trained model: the three splits of its task, and the recipe."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.jsonl import sample_by_digest
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import Task

HELD_OUT = 10
"""Percent of train that become the dev split where the source has none."""


def load_splits(
    task: Task,
    *,
    source: str = "auto",
    folder: Path | None = None,
    limits: tuple[int | None, int | None, int | None] = (None, None, None),
) -> Splits:
    """Read train, dev and test of one source, at most as many rows of each as `limits` says.

    Without a dev split in the source, a tenth of train is held out.
    """
    train = load_dataset(task, source=source, split="train", folder=folder)
    if "dev" in task.tables[train.source].splits:
        dev = load_dataset(task, source=train.source, split="dev", folder=folder)
    else:
        train, dev = hold_out(train)
    test = load_dataset(task, source=train.source, split="test", folder=folder)
    limited = (
        replace(data, examples=sample_by_digest(data.examples, limit))
        for data, limit in zip((train, dev, test), limits, strict=True)
    )
    return Splits(*limited)


def hold_out(data: Dataset, percent: int = HELD_OUT) -> tuple[Dataset, Dataset]:
    """Cut off about `percent` of the rows by the digest of the text: equal texts stay together."""
    train = tuple(e for e in data.examples if _percentile(e.text) >= percent)
    dev = tuple(e for e in data.examples if _percentile(e.text) < percent)
    if not (train and dev):
        raise FaithbenchError(
            f"task {data.task.name} has no dev split, and {len(data.examples)} training rows are "
            "too few to set some aside; name a dev split in the task file"
        )
    held_out = replace(data, examples=dev, split=f"{data.split} (held out)")
    return replace(data, examples=train), held_out


def _percentile(text: str) -> int:
    """Return a number from 0 to 99 that depends on the text alone."""
    # The prefix keeps this draw independent of others by digest, such as `sample_by_digest`.
    digest = hashlib.sha256(f"held out:{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100


def usual_metric(task: Task) -> str:
    """Return the validation score that chooses the epoch unless another is asked for."""
    return task.dev_metric or KINDS[task.kind].usual_score


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the weights, besides base and data.

    `objectives` are the losses that are added, each as `name:key=value`; none is cross-entropy.
    `metric` is the dev score that chooses the epoch, and `patience` epochs without a better one
    end the training. `max_tokens` cuts training and dev texts. `dropout` is the adapter's,
    `encoder_dropout` that of the network itself. Without `targets`, an adapter goes on all linear
    maps of the encoder. Each number n of `excerpts` adds, per training example, its rationale
    sentences with n sentences before and after; with `excerpts_alone`, they replace the example.
    With `arch`, no encoder is fine-tuned: a network of that architecture is trained from scratch,
    from word vectors of the kind `vectors` and `width`; its attention, if it has some, is made by
    `projection`. `amsgrad` is the variant of Adam that never raises a step.
    """

    seed: int = 0
    method: Literal["lora", "full"] = "lora"
    objectives: tuple[str, ...] = ()
    metric: str = "accuracy"
    epochs: int = 4
    patience: int = 2
    learning_rate: float = 1e-3
    batch_size: int = 32
    max_tokens: int | None = None
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.1
    encoder_dropout: float = 0.1
    weight_decay: float = 0.01
    warmup: float = 0.06
    targets: tuple[str, ...] = ()
    excerpts: tuple[int, ...] = ()
    excerpts_alone: bool = False
    arch: str = ""
    vectors: str = "minilm"
    width: int = 0
    projection: str = ""
    amsgrad: bool = False


def with_labels(data: Dataset, added: tuple[str, ...]) -> Dataset:
    """Return a split of the same task with more labels, after its own."""
    if not added:
        return data
    labels = (*data.task.labels, *added)
    return replace(data, task=data.task.model_copy(update={"labels": labels}))


@dataclass(frozen=True)
class Splits:
    """The data for training, for choosing the epoch, and for the scores of the card."""

    train: Dataset
    dev: Dataset
    test: Dataset

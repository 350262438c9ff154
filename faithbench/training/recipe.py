"""The three parts of a task's data that a training needs, whatever its source gives."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.jsonl import sample_by_digest
from faithbench.data.tasks import Task

HELD_OUT = 10
"""Percent of train that stand in for a dev split where the source has none."""


def load_splits(
    task: Task,
    *,
    source: str = "auto",
    folder: Path | None = None,
    limits: tuple[int | None, int | None, int | None] = (None, None, None),
) -> Splits:
    """Read train, dev and test of one source, each with its limit; dev may come out of train."""
    train = load_dataset(task, source=source, split="train", folder=folder)
    part = getattr(task, train.source)
    if "dev" in part.splits:
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
    """Set a part aside by the digest of the text, so that equal texts stay on one side."""
    aside = [_place(example.text) < percent for example in data.examples]
    parts = [
        tuple(e for e, out in zip(data.examples, aside, strict=True) if out == wanted)
        for wanted in (False, True)
    ]
    if not all(parts):
        raise FaithbenchError(
            f"task {data.task.name} has no dev split, and {len(data.examples)} training rows are "
            "too few to set some aside; name a dev split in the task file"
        )
    return replace(data, examples=parts[0]), replace(
        data, examples=parts[1], split=f"{data.split} (held out)"
    )


def _place(text: str) -> int:
    digest = hashlib.sha256(f"held out:{text}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100


def usual_metric(task: Task) -> str:
    """Return the validation score that chooses the epoch unless another is asked for."""
    return task.dev_metric or ("f1" if task.kind == "qa" else "accuracy")


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the weights, beside base and data.

    `metric` is what dev chooses the epoch by; `patience` epochs without a better one end the
    training. `max_tokens` cuts training and dev texts. `dropout` is the adapter's,
    `encoder_dropout` that of the network itself. Without `targets`, an adapter goes on all
    linear maps of the encoder. `excerpts` adds short lessons made of each training rationale:
    its sentences with so many around them, one lesson per number; with `excerpts_alone`,
    documents themselves are no lessons.
    """

    seed: int = 0
    method: Literal["lora", "full"] = "lora"
    objective: str = "cross-entropy"
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


@dataclass(frozen=True)
class Splits:
    """The data a model is trained on, chosen by, and judged on."""

    train: Dataset
    dev: Dataset
    test: Dataset

"""What determines a training: the recipe and the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from faithbench.data import Dataset

Progress = Callable[[str, int, int], None]


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

"""Small splits, a tiny base and progress callbacks that the tests of training share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from faithbench.core.types import Answer, Example, Progress
from faithbench.data.dataset import Dataset
from faithbench.data.tasks import Task
from faithbench.testing import tiny
from faithbench.training.recipe import Recipe, Splits
from tests.support.builders import make_task

ADAPTER = Recipe(epochs=2, rank=2, alpha=4, batch_size=4, learning_rate=1e-2)
WHOLE = replace(ADAPTER, method="full", learning_rate=3e-3)
WORDS = ("good", "bad", "film", "plot", "very", "great", "dull", "and")


def label_splits() -> Splits:
    """Texts with `good` are yes, texts with `bad` are no: 26, 6 and 10 of them."""
    rows = [
        Example(f"e{n}", " ".join([WORDS[n % 2], *WORDS[2 : 3 + n % 5]]), int(n % 2 == 0))
        for n in range(42)
    ]
    return _splits(make_task(hub=None), rows, 26)


def answer_splits() -> Splits:
    """Texts that hold the answer `dull` somewhere: 28, 6 and 8 of them.

    Of the training answers, one starts inside a token and one lies beyond the 64 tokens.
    """
    rows = []
    for n in range(42):
        words = [f"w{(n * k) % 9}" for k in range(1, 6)]
        words[n % 5] = "dull"
        text = " ".join(words)
        answer = Answer(text.index("dull"), "dull")
        rows.append(Example(f"q{n}", text, 0, "is the film", answers=(answer,)))
    rows[3] = replace(rows[3], answers=(Answer(rows[3].text.index("ull"), "ull"),))
    far = "w1 " * 70 + "dull"
    rows[4] = replace(rows[4], text=far, answers=(Answer(far.index("dull"), "dull"),))
    return _splits(make_task(kind="qa", labels=["answerable"], hub=None), rows, 28)


def _splits(task: Task, rows: list[Example], train: int) -> Splits:
    cuts = (rows[:train], rows[train : train + 6], rows[train + 6 :])
    return Splits(
        *(
            dataset(task, examples, name)
            for name, examples in zip(("train", "dev", "test"), cuts, strict=True)
        )
    )


def dataset(task: Task, examples: Sequence[Example], split: str = "train") -> Dataset:
    """Return examples as a split of a task's folder."""
    return Dataset(task, "folder", split, tuple(examples), f"{split}-sum", "none", False)


def save_base(folder: Path, architecture: str) -> Path:
    """Write a tiny encoder with dropout into a folder, and return the folder."""
    folder = folder / f"tiny-{architecture}"
    model = tiny.tiny_model(architecture, dtype=torch.float32)
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def silent(*_: Any) -> None:
    """Report nothing."""


def killer(stage: str, at: int) -> Progress:
    """Return a progress callback that interrupts the training at a step of a stage.

    A stage is known by how its name begins: what follows is an example.
    """

    def progress(name: str, done: int, _total: int) -> None:
        if name.startswith(stage) and done == at:
            raise KeyboardInterrupt

    return progress

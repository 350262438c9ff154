"""Scores of whole splits by a support model's explainers, kept for when a command is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError, Interrupted
from faithbench.core.types import Batch, Progress
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import Selected
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run.backends import Backend
from faithbench.run.job import Job
from faithbench.run.loop import run

CHUNK = 64
"""Examples that are explained together, at most: there is nothing to erase, so chunks are cheap."""


@dataclass(frozen=True)
class RandomWords:
    """Score each word with a random number, on the first of its tokens.

    Unlike `random`, whose scores are of tokens: summed, they would prefer words of many pieces.
    """

    stochastic: ClassVar[bool] = True
    reads_model: ClassVar[bool] = False

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return a number between 0 and 1 at the first token of each word, and 0 elsewhere."""
        scores = np.zeros(tuple(batch.ids.shape))
        for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
            words, first = np.unique(encoding.words, return_index=True)
            drawn = np.random.default_rng(seed).random(len(words))
            scores[row, first] = np.where(words >= 0, drawn, 0)
        return torch.from_numpy(scores)


def random_words() -> Selected:
    """Return the control of FRESH: as many words, any of them."""
    return Selected("random-words", RandomWords(), version=version("faithbench"))


def explained(
    model: Model,
    data: Dataset,
    explainers: Sequence[Selected],
    folder: Path,
    seeds: int,
    backend: Backend,
    progress: Progress,
) -> dict[str, StoredRecord]:
    """Explain a split by each explainer, or read what was explained before; by label.

    These are ordinary records below `folder`, without any metric: their rows have the scores.
    """
    job = Job(data, model, tuple(explainers), metrics=(), results=folder, seeds=seeds, chunk=CHUNK)
    paths = {cell.selected.label: cell.folder / f"{cell.stem}.json" for cell in job.cells}
    missing = tuple(one for one in explainers if not paths[one.label].exists())
    if missing:
        try:
            run(replace(job, explainers=missing), progress, backend)
        except Interrupted as stop:
            # It counts the examples of this split alone.
            raise KeyboardInterrupt from stop
        except FaithbenchError as error:
            error.kept = None
            raise
    return {label: StoredRecord(path, read(path)) for label, path in paths.items()}

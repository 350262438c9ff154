"""Scores of whole splits by explainers, kept for when a command is repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from faithbench.core.errors import FaithbenchError, Interrupted
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import Selected
from faithbench.models.model import Model
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run.backends import Backend
from faithbench.run.job import Job
from faithbench.run.loop import run

CHUNK = 64
"""Examples that are explained together, at most: there is nothing to erase, so chunks are cheap."""


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

"""The job of a run and its cells, each with an identity and a file name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from faithbench.core.erasure import Operator
from faithbench.core.types import Encoding, Long
from faithbench.data.dataset import Dataset
from faithbench.explainers.protocol import assets_of, is_stochastic
from faithbench.explainers.selection import Selected
from faithbench.metrics.kinds import Metric
from faithbench.metrics.registry import wanted
from faithbench.metrics.stability import largest_change
from faithbench.records.conditions import Conditions, digest_of_ids
from faithbench.records.identity import (
    Identity,
    folder_name,
    model_folder_name,
    run_key,
    stem_of,
)
from faithbench.records.schema import PROTOCOL, PrecisionFacts

if TYPE_CHECKING:  # submissions are checked against the defaults of a job without torch
    from faithbench.models.model import Model


@dataclass(frozen=True)
class Job:
    """Everything a run needs: one data set, one model, several explainers and metrics.

    Explainers that draw at random run under `seeds` seeds, from `seed` on. `chunk` is the
    maximum number of examples that are computed together. `encoder` names the sentence encoder
    for semantic neighbours, if not the one that comes with faithbench. `company` are the labels of
    the explainers of a killed run that this one continues, where some are finished already.
    """

    data: Dataset
    model: Model
    explainers: tuple[Selected, ...]
    metrics: tuple[Metric, ...]
    results: Path
    operator: Operator = "mask"
    seed: int = 0
    seeds: int = 3
    encoder: str | None = None
    chunk: int = 16
    budget: int = 2048
    precision: PrecisionFacts | None = None
    long: Long = "truncate"
    company: tuple[str, ...] = ()

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions that the records of this job share."""
        data, model = self.data, self.model
        deletes = self.operator == "delete"
        return Conditions(
            task=data.task.name,
            task_version=data.task.version,
            source=data.source,
            data_sha256=data.sha256,
            split=data.split,
            ids=digest_of_ids(example.id for example in data.examples),
            model_sha256=model.sha256,
            dtype=str(model.dtype).removeprefix("torch."),
            protocol=PROTOCOL,
            operator=self.operator,
            erasure_token="" if deletes else model.erasure_token(self.operator)[0],
            long=self.long,
            model=model.public_name,
            n=len(data.examples),
        )

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The cells of this job, one per explainer."""
        return tuple(Cell(self, selected) for selected in self.explainers)


@dataclass(frozen=True)
class Cell:
    """One explainer of a job: what a record is written for."""

    job: Job
    selected: Selected

    @cached_property
    def identity(self) -> str:
        """Digest what the record is about; a cell of another identity is another file."""
        job = self.job
        return Identity(
            conditions=job.conditions,
            ids=tuple(example.id for example in job.data.examples),
            explainer=self.selected.name,
            settings=self.selected.settings,
            assets=self.assets,
            seeds=self.seeds,
            metrics={metric.name: metric.version for metric in job.metrics},
            encoder=job.encoder,
            revision=self.selected.revision,
        ).digest

    @cached_property
    def key(self) -> str:
        """Digest the identity and all that could change a last bit: what a resumed run shares."""
        job = self.job
        return run_key(
            self.identity,
            labels=job.company or [selected.label for selected in job.explainers],
            chunk=job.chunk,
            budget=job.budget,
            device=str(job.model.device) + ", compiled" * job.model.compiled,
        )

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds to run under: several only if the explainer draws at random."""
        count = self.job.seeds if is_stochastic(self.selected.explainer) else 1
        return tuple(range(self.job.seed, self.job.seed + count))

    @property
    def assets(self) -> dict[str, str]:
        """Return digests of the files that the explainer's scores depend on."""
        return assets_of(self.selected.explainer, self.job.model)

    @property
    def folder(self) -> Path:
        """Return where the cell's files go: one folder per task, source and model."""
        data, model = self.job.data, self.job.model
        name = model_folder_name(model.public_name, model.sha256)
        return self.job.results / folder_name(data.task.name, data.source) / name

    @property
    def stem(self) -> str:
        """Return the file name without ending: readable, and unique by its identity."""
        return stem_of(self.selected.label, self.identity)


CUTTING = 3
"""Version of the rule that cuts examples into chunks, and of the lines of unfinished rows."""


def partial_path(cell: Cell) -> Path:
    """Return where the rows of a cell grow.

    Rows of chunks that were cut by another rule may differ in a last bit: they are not continued.
    """
    return cell.folder / ".partial" / f"{cell.stem}-{cell.key[:8]}-{CUTTING}.rows.jsonl"


PROBED_EXAMPLES = 16
"""Number of examples that max_sensitivity is measured on, at most."""
TIMED_EXAMPLES = 10
"""Number of examples timed, at most."""


def probed_ids(job: Job, encodings: Sequence[Encoding]) -> frozenset[str]:
    """Return the ids of the examples that max_sensitivity is measured on."""
    if wanted(largest_change, job.metrics) is None:
        return frozenset()
    return frozenset(e.example.id for e in sample_by_length(encodings, PROBED_EXAMPLES))


def sample_by_length(encodings: Sequence[Encoding], most: int = TIMED_EXAMPLES) -> list[Encoding]:
    """Choose examples evenly over all lengths: the shortest, the longest, and between.

    A quarter of all, but at least six where there are six, and no more than `most`: this keeps
    the cost of measuring below that of a small run.
    """
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    count = min(len(order), most, max(6, len(order) // 4))
    indices = np.linspace(0, len(order) - 1, count).round().astype(int)
    return [order[index] for index in indices]

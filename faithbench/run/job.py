"""What is to be computed: the job of a run, and its cells, each with a name of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from faithbench.core.erasure import Operator
from faithbench.core.files import digest_of
from faithbench.core.types import Encoding
from faithbench.data.dataset import Dataset
from faithbench.explainers.protocol import Explainer
from faithbench.explainers.selection import Selected
from faithbench.metrics.registry import Metric
from faithbench.models.encoding import Long
from faithbench.models.model import Model
from faithbench.records.identity import Identity, folder_name, model_folder_name, stem_of
from faithbench.records.schema import PrecisionFacts


@dataclass(frozen=True)
class Job:
    """Everything a run needs: one data set, one model, several explainers and metrics.

    Explainers that draw at random run under so many `seeds`, from `seed` on. `encoder` names
    the sentence encoder for semantic neighbours, if not the one that comes with faithbench.
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


@dataclass(frozen=True)
class Cell:
    """One explainer of a job: what a record is written for."""

    job: Job
    selected: Selected

    @cached_property
    def identity(self) -> str:
        """Digest what the record is about; a cell of another identity is another file."""
        job, data, model = self.job, self.job.data, self.job.model
        return Identity(
            task=(data.task.name, data.task.version, data.source, data.split),
            data=(data.sha256, tuple(e.id for e in data.examples)),
            model=(model.weights_sha256, str(model.dtype)),
            explainer=(self.selected.name, dict(self.selected.settings), self.assets),
            metrics=tuple((m.name, m.version) for m in job.metrics),
            run=(job.operator, self.seeds, job.long, job.encoder),
        ).digest

    @cached_property
    def key(self) -> str:
        """Digest, beside the identity, all that could move a last bit: only that may resume."""
        job = self.job
        company = [chosen.label for chosen in job.explainers]
        return digest_of([self.identity, company, job.chunk, job.budget, str(job.model.device)])

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds to run under: several only if the explainer draws at random."""
        count = self.job.seeds if is_stochastic(self.selected.explainer) else 1
        return tuple(range(self.job.seed, self.job.seed + count))

    @property
    def assets(self) -> dict[str, str]:
        """Return digests of the files that the explainer's scores depend on."""
        assets = getattr(self.selected.explainer, "assets", None)
        return dict(assets(self.job.model)) if assets else {}

    @property
    def folder(self) -> Path:
        """Return where the cell's files go: one folder per task, source and model."""
        data, model = self.job.data, self.job.model
        name = model_folder_name(model.public_name, model.weights_sha256)
        return self.job.results / folder_name(data.task.name, data.source) / name

    @property
    def stem(self) -> str:
        """Return the file name without ending: readable, and unique by its identity."""
        return stem_of(self.selected.label, self.identity)


def is_stochastic(explainer: Explainer) -> bool:
    """Say whether an explainer draws at random: it then has `stochastic = True` on its class."""
    return bool(getattr(explainer, "stochastic", False))


def partial_path(cell: Cell) -> Path:
    """Return where the rows of a cell grow."""
    return cell.folder / ".partial" / f"{cell.stem}-{cell.key[:8]}.rows.jsonl"


PROBED_EXAMPLES = 16
"""Of so many examples at most, spread over all lengths, is max_sensitivity taken."""


def asked(job: Job, name: str) -> bool:
    """Say whether a metric of this name is wanted."""
    return any(metric.name == name for metric in job.metrics)


TIMED_EXAMPLES = 10
"""Of so many examples at most is speed measured."""


def sample_by_length(encodings: Sequence[Encoding], most: int = TIMED_EXAMPLES) -> list[Encoding]:
    """Choose examples evenly over all lengths: the shortest, the longest, and between.

    A quarter of all, but six of them if there are so many, and no more than `most`: what is
    dear to measure must not outweigh a small run.
    """
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    count = min(len(order), most, max(6, len(order) // 4))
    places = np.linspace(0, len(order) - 1, count).round().astype(int)
    return [order[place] for place in places]

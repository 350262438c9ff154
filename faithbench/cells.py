"""What is to be computed: the job of a run, and its cells, each with a name of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faithbench.data import Dataset
from faithbench.encoding import Long
from faithbench.erasure import Operator
from faithbench.identity import Identity, digest_of, folder_name, model_folder_name, stem_of
from faithbench.metrics import Metric
from faithbench.models import Model
from faithbench.records import PrecisionFacts
from faithbench.selection import Chosen
from faithbench.types import Explainer


@dataclass(frozen=True)
class Job:
    """Everything a run needs: one data set, one model, several explainers and metrics.

    Explainers that draw at random run under so many `seeds`, from `seed` on. `encoder` names
    the sentence encoder for semantic neighbours, if not the one that comes with faithbench.
    """

    data: Dataset
    model: Model
    explainers: tuple[Chosen, ...]
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
    chosen: Chosen

    @cached_property
    def identity(self) -> str:
        """Digest what the record is about; a cell of another identity is another file."""
        job, data, model = self.job, self.job.data, self.job.model
        return Identity(
            task=(data.task.name, data.task.version, data.source, data.split),
            data=(data.sha256, tuple(e.id for e in data.examples)),
            model=(model.weights_sha256, str(model.dtype)),
            explainer=(self.chosen.name, dict(self.chosen.settings), self.assets),
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
        count = self.job.seeds if is_stochastic(self.chosen.explainer) else 1
        return tuple(range(self.job.seed, self.job.seed + count))

    @property
    def assets(self) -> dict[str, str]:
        """Return digests of the files that the explainer's scores depend on."""
        assets = getattr(self.chosen.explainer, "assets", None)
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
        return stem_of(self.chosen.label, self.identity)


def is_stochastic(explainer: Explainer) -> bool:
    """Say whether an explainer draws at random: it then has `stochastic = True` on its class."""
    return bool(getattr(explainer, "stochastic", False))

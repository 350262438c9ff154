"""Records of explainers: found where they are, made where they are not, all of a model together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from faithbench.core.errors import FaithbenchError, RefusedError
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.metrics.registry import METRICS
from faithbench.models.model import Model
from faithbench.records.record import read
from faithbench.records.store import StoredRecord, record_files
from faithbench.run.backends import choose_backend
from faithbench.run.job import Cell, Job
from faithbench.run.loop import run_serving
from faithbench.run.request import Request, make_job
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.request import Clock, ReproduceRequest
from faithbench.studies.reproduction.values import Missing, RecordRef

Found = StoredRecord | Missing


@dataclass(frozen=True)
class Wanted:
    """A record that cells need: of a network and an explainer, with metrics and seeds."""

    network: Network
    explainer: str
    metrics: tuple[str, ...]
    seeds: int


@dataclass
class Explanations:
    """Keeps the records of one request; each is made at most once."""

    request: ReproduceRequest
    networks: Networks
    clock: Clock
    progress: Progress
    found: dict[Wanted, Found] = field(default_factory=dict)
    _published: list[StoredRecord] | None = None

    def make(self, wanted: Sequence[Wanted]) -> None:
        """Find or make records: what shares network, metrics and seeds runs together."""
        groups: dict[tuple[Network, tuple[str, ...], int], list[Wanted]] = {}
        for one in dict.fromkeys(wanted):
            if one not in self.found:
                groups.setdefault((one.network, one.metrics, one.seeds), []).append(one)
        for (network, metrics, seeds), group in groups.items():
            label = f"explain {network.key} {network.seed}: " + ", ".join(
                sorted(one.explainer for one in group)
            )
            with self.clock.piece(label):
                self._make_group(network, metrics, seeds, group)

    def record(self, wanted: Wanted) -> Found:
        """Return one record, made now if it is not there."""
        self.make([wanted])
        return self.found[wanted]

    def ref(self, stored: StoredRecord) -> RecordRef:
        """Return how a page names a record."""
        for root in (self.request.results, *self.request.also):
            if stored.path.is_relative_to(root):
                return RecordRef(
                    stored.path.relative_to(root).as_posix(), stored.record.rows.sha256
                )
        return RecordRef(stored.path.name, stored.record.rows.sha256)

    def _make_group(
        self, network: Network, metrics: tuple[str, ...], seeds: int, group: Sequence[Wanted]
    ) -> None:
        data = self.networks.texts(network)
        try:
            job = self._job(network, data, metrics, seeds, [one.explainer for one in group])
        except FaithbenchError as error:
            self.found |= dict.fromkeys(group, Missing(str(error)))
            return
        by_label = {find_explainers(one.explainer)[0].label: one for one in group}
        missing: list[Selected] = []
        for selected in job.explainers:
            stored = self._there(job, selected, only=bool(network.only))
            if stored is None:
                missing.append(selected)
            else:
                self.found[by_label[selected.label]] = stored
        if not missing:
            return
        asked = replace(job, explainers=tuple(missing))
        try:
            backend = choose_backend(self.request.jobs, str(job.model.device))
            served = run_serving(asked, self.progress, backend)
        except RefusedError as refused:
            left_out: Mapping[str, str] = refused.reasons
        else:
            left_out = served.left_out
            for outcome in served.outcomes:
                self.found[by_label[outcome.selected.label]] = StoredRecord(
                    outcome.path, outcome.record
                )
        for label, why in left_out.items():
            self.found[by_label[label]] = Missing(why)

    def _job(
        self,
        network: Network,
        data: Dataset,
        metrics: tuple[str, ...],
        seeds: int,
        explainers: Sequence[str],
    ) -> Job:
        return make_job(
            Request(
                explainer=",".join(explainers),
                task=network.task,
                model=self._model(network),
                data=data,
                metrics=",".join(metrics),
                seeds=seeds,
                human=False,
                results=self.request.results / "records",
            ),
            self.progress,
        )

    def _model(self, network: Network) -> Model | str:
        """Return a network for a job: by its name, if it knows more classes than its task."""
        model = self.networks.load(network)
        return model if model.labels == network.task.labels else network.ref

    def _there(self, job: Job, selected: Selected, *, only: bool) -> StoredRecord | None:
        """Return the record of this very run, or a published one that covers it."""
        cell = Cell(job, selected)
        try:
            path = cell.folder / f"{cell.stem}.json"
        except FaithbenchError:  # a file that its name depends on is missing: the run will say so
            return None
        if path.is_file():
            return StoredRecord(path, read(path))
        # Of a larger record, only some texts may have the label that is asked for.
        exactly = self.request.limit is not None or only
        covering = [
            one for one in self._all_published() if _covers(one, job, cell, exactly=exactly)
        ]
        return max(covering, key=lambda one: one.record.task.n, default=None)

    def _all_published(self) -> list[StoredRecord]:
        if self._published is None:
            folders = () if self.request.quick else self.request.also
            self._published = [
                StoredRecord(path, read(path))
                for folder in folders
                for path, _ in (record_files(folder) if folder.is_dir() else ())
            ]
        return self._published


def _covers(stored: StoredRecord, job: Job, cell: Cell, *, exactly: bool) -> bool:
    """Return whether a record has all that a cell asks for: the same run, of as many texts or more.

    Texts are drawn by the digest of their ids, so that the first hundred are among the first two
    hundred. Values of neighbours depend on all texts, and are not taken from a larger record; with
    `exactly`, nothing is.
    """
    record, run = stored.record, job.conditions
    names = [metric.name for metric in job.metrics]
    larger = record.task.n > run.n
    return (
        record.explainer.name == cell.selected.name
        and record.explainer.revision == cell.selected.revision
        and (record.model.digest, record.model.dtype) == (run.model_sha256, run.dtype)
        and record.task.data_sha256 == run.data_sha256
        and (record.task.name, record.task.version) == (run.task, run.task_version)
        and record.task.split == run.split
        and record.task.n >= run.n
        and not (larger and exactly)
        and not (larger and any(METRICS[name].family == "stability" for name in names))
        and record.explainer.settings == dict(cell.selected.settings)
        and record.explainer.assets == cell.assets
        and record.seeds[: len(cell.seeds)] == cell.seeds
        and record.protocol.version == run.protocol
        and (record.protocol.operator, record.protocol.long) == (run.operator, run.long)
        and record.fresh is None
        and all(
            name in record.metrics and record.metrics[name].version == METRICS[name].version
            for name in names
        )
        and {example.id for example in job.data.examples} <= set(stored.by_id)
    )

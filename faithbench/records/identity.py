"""The identity of a record, as a digest: a record of another identity is another file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from faithbench.core.files import digest_of, slug
from faithbench.core.types import Settings
from faithbench.metrics.registry import Measure, Metric, find_metrics
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Everything that decides what a record holds, known before anything is computed.

    `ids` are those of the examples in their order, and `assets` the digests of files that the
    explainer reads. `metrics` maps each metric to its version, in the order asked for.
    `encoder` is the sentence encoder that was asked for, None for the one faithbench comes with.
    """

    conditions: Conditions
    ids: tuple[str, ...]
    explainer: str
    settings: Settings
    assets: dict[str, str]
    seeds: tuple[int, ...]
    metrics: dict[str, int]
    encoder: str | None

    @property
    def digest(self) -> str:
        """The digest that file names are made of."""
        # The names of all published records depend on this shape, down to "torch." and to the
        # order of metrics; protocol and erasure token are not in it.
        run = self.conditions
        return digest_of(
            {
                "task": [run.task, run.task_version, run.source, run.split],
                "data": [run.data_sha256, self.ids],
                "model": [run.weights_sha256, f"torch.{run.dtype}"],
                "explainer": [self.explainer, dict(self.settings), self.assets],
                "metrics": list(self.metrics.items()),
                "run": [run.operator, self.seeds, run.long, self.encoder],
            }
        )


def identity_of(record: Record, rows: Sequence[ResultRow]) -> Identity:
    """Return the identity of a record that was made with `--metrics all` and the usual encoder.

    A record does not say which metrics were asked for and had nothing to store, nor which
    encoder was asked for: of other runs the digest is another than in the file name.
    """
    return Identity(
        conditions=conditions_of(record, rows),
        ids=tuple(row.id for row in rows),
        explainer=record.explainer.name,
        settings=record.explainer.settings,
        assets=record.explainer.assets,
        seeds=record.seeds,
        metrics={metric.name: _version(metric, record) for metric in _metrics_of_all(record)},
        encoder=None,
    )


def run_key(digest: str, *, labels: Sequence[str], chunk: int, budget: int, device: str) -> str:
    """Digest an identity with all that could move a last bit of the rows.

    That is the explainers of the same run, since they share batches, the sizes of chunks and
    batches, and the device. Only rows of the same key are continued by a later run.
    """
    return digest_of([digest, list(labels), chunk, budget, device])


def place_of(record: Record, label: str, digest: str) -> PurePosixPath:
    """Return where a record belongs below its results folder, without the file's ending."""
    task, model = record.task, record.model
    return (
        PurePosixPath(folder_name(task.name, task.source))
        / model_folder_name(model.name, model.weights_sha256)
        / stem_of(label, digest)
    )


def folder_name(task: str, source: str) -> str:
    """Name the folder of a task's records."""
    return f"{task}-{source}"


def model_folder_name(model: str, weights_sha256: str) -> str:
    """Name the folder of a model's records."""
    return f"{slug(model)}-{weights_sha256[:6]}"


def stem_of(label: str, digest: str) -> str:
    """Return a file name without ending: a readable label, made unique by the digest."""
    return f"{slug(label)}-{digest[:8]}"


def _metrics_of_all(record: Record) -> list[Metric]:
    """Return the metrics that `all` asked for: those in the record, and measures of the run."""
    # Some measures are facts of the record (seconds, memory) and leave no entry in its metrics.
    needs = {None, *(["rationale"] if record.task.rationale != "none" else [])}
    return [
        metric
        for metric in find_metrics("all")
        if metric.name in record.metrics or (isinstance(metric, Measure) and metric.need in needs)
    ]


def _version(metric: Metric, record: Record) -> int:
    """Return the version in the record; of a measure without an entry, the current one."""
    facts = record.metrics.get(metric.name)
    return metric.version if facts is None else facts.version

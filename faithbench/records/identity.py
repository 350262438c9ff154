"""What a record is about, as a digest: a record of another identity is another file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath

from faithbench.core.files import digest_of, slug
from faithbench.metrics.registry import Measure, Metric, find_metrics
from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record


@dataclass(frozen=True)
class Identity:
    """All that a record is about; `metrics` are names with versions, in the order asked for."""

    task: tuple[str, int, str, str]
    data: tuple[str, tuple[str, ...]]
    model: tuple[str, str]
    explainer: tuple[str, Mapping[str, bool | int | float | str], Mapping[str, str]]
    metrics: tuple[tuple[str, int], ...]
    run: tuple[str, tuple[int, ...], str, str | None]

    @property
    def digest(self) -> str:
        """The digest by which files are named."""
        return digest_of(asdict(self))


def identity_of(record: Record, rows: Sequence[ResultRow]) -> Identity:
    """Return the identity of a record that was made with all metrics and the usual encoder."""
    task, model, explainer = record.task, record.model, record.explainer
    return Identity(
        task=(task.name, task.version, task.source, task.split),
        data=(task.data_sha256, tuple(row.id for row in rows)),
        model=(model.weights_sha256, f"torch.{model.dtype}"),
        explainer=(explainer.name, explainer.settings, explainer.assets),
        metrics=tuple((metric.name, _version(metric, record)) for metric in _asked(record)),
        run=(record.protocol.operator, record.seeds, record.protocol.long, None),
    )


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
    """Return a file name without ending: readable, and unique by its identity."""
    return f"{slug(label)}-{digest[:8]}"


def _asked(record: Record) -> list[Metric]:
    """Return the metrics that `all` asked for: the record's own, and measures of the run."""
    there = {None, *(["rationale"] if record.task.rationale != "none" else [])}
    return [
        metric
        for metric in find_metrics("all")
        if metric.name in record.metrics or (isinstance(metric, Measure) and metric.need in there)
    ]


def _version(metric: Metric, record: Record) -> int:
    own = record.metrics.get(metric.name)
    return metric.version if own is None else own.version

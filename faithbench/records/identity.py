"""The identity of a record, as a digest: a record of another identity is another file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from faithbench.core.files import digest_of, slug
from faithbench.core.types import Settings
from faithbench.metrics.kinds import Measure, Metric
from faithbench.metrics.registry import find_metrics, measures_per_example
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Everything that decides what a record holds, known before anything is computed.

    `ids` are those of the examples in their order, and `assets` the digests of files that the
    explainer reads. `metrics` maps each metric to its version, in the order asked for.
    `encoder` is the sentence encoder that was asked for, None for the one faithbench comes with.
    `revision` is that of the explainer.
    """

    conditions: Conditions
    ids: tuple[str, ...]
    explainer: str
    settings: Settings
    assets: dict[str, str]
    seeds: tuple[int, ...]
    metrics: dict[str, int]
    encoder: str | None
    revision: int = 1

    @property
    def digest(self) -> str:
        """The digest that file names are made of."""
        # The names of all published records depend on this shape, down to "torch." and to the
        # order of metrics; protocol and erasure token are not in it.
        run = self.conditions
        explainer = [self.explainer, dict(self.settings), self.assets]
        return digest_of(
            {
                "task": [run.task, run.task_version, run.source, run.split],
                "data": [run.data_sha256, self.ids],
                "model": [run.model_sha256, f"torch.{run.dtype}"],
                # A first revision goes without saying, as it did before there were others.
                "explainer": [*explainer, self.revision] if self.revision > 1 else explainer,
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
        revision=record.explainer.revision,
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
        / model_folder_name(model.name, model.digest)
        / stem_of(label, digest)
    )


def folder_name(task: str, source: str) -> str:
    """Name the folder of a task's records."""
    return f"{task}-{source}"


def model_folder_name(model: str, sha256: str) -> str:
    """Name the folder of a model's records."""
    return f"{slug(model)}-{sha256[:6]}"


def stem_of(label: str, digest: str) -> str:
    """Return a file name without ending: a readable label, made unique by the digest."""
    return f"{slug(label)}-{digest[:8]}"


def renamed_stem(stem: str, before: Record, after: Record, rows: Sequence[ResultRow]) -> str:
    """Return the name of a changed record's file: as before, but for the digest at its end.

    A name that does not follow from the record, as of a run with other metrics, stays.
    """
    label, _, digest = stem.rpartition("-")
    was, now = identity_of(before, rows), identity_of(after, rows)
    unmeasured = [m.name for m in measures_per_example() if m.name not in after.metrics]
    # Of `all`; of `all` without what takes long; of metrics that left an entry each, such as
    # those of one family.
    for absent in ((), unmeasured, [name for name in was.metrics if name not in after.metrics]):
        if _without(was, absent).digest.startswith(digest):
            return f"{label}-{_without(now, absent).digest[:8]}"
    return stem


def _without(identity: Identity, absent: Sequence[str]) -> Identity:
    """Return the identity of a run that took some metrics out of `all`."""
    metrics = {name: version for name, version in identity.metrics.items() if name not in absent}
    return replace(identity, metrics=metrics)


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

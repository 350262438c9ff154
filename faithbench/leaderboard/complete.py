"""Bring published records up to date with metrics that read nothing but words and scores.

Published rows keep the scores of a few examples only. So the explainer of a record is run again
on the record's examples, without the metrics that ask the model about erased inputs, and the new
values take the place of old ones. Everything else of the record stays as it was measured.

A record of an older revision of its explainer gets the cost of the current one in the same way, and
its times, which are then those of this machine. If the scores changed too, it has to be run again.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import file_sha256, reason, replace_file
from faithbench.core.types import Progress
from faithbench.data.tasks import load_task
from faithbench.explainers.registry import is_control
from faithbench.leaderboard.plan import Say
from faithbench.metrics.kinds import Metric
from faithbench.metrics.registry import METRICS, find_metrics, measures_per_example, text_metrics
from faithbench.records.conditions import describe_field, differing
from faithbench.records.identity import renamed_stem, stem_of
from faithbench.records.record import dumps, read
from faithbench.records.rows import ResultRow, to_header, to_line
from faithbench.records.rows_file import read_keyed_rows
from faithbench.records.schema import Record, RowsFacts
from faithbench.records.store import StoredRecord, record_files
from faithbench.records.summary import cost_facts, metric_facts

if TYPE_CHECKING:  # this room is imported without torch
    from faithbench.explainers.selection import Selected
    from faithbench.run.job import Job
    from faithbench.run.request import Request

TOLERANCE = 1e-3
"""How far scores may lie from the published ones, as a part of the largest score of the text."""
MOST_DIFFERING = 0.05
"""Share of the texts with published scores whose scores may differ by more."""


class DueRecord(NamedTuple):
    """A published record, its path below the folder, and the metrics that it lacks.

    `revision` is the explainer's current one, if that is another than the record's.
    """

    inside: str
    stored: StoredRecord
    metrics: tuple[Metric, ...]
    revision: int | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the explainer has to run for it."""
        return bool(self.metrics) or self.revision is not None

    @property
    def lacks(self) -> str:
        """What it lacks, in words."""
        cost = [] if self.revision is None else [f"the cost of revision {self.revision}"]
        return ", ".join([*(metric.name for metric in self.metrics), *cost])

    @property
    def table(self) -> str:
        """The folder that the record lies in: task and source of the data."""
        return self.inside.split("/", maxsplit=1)[0]


def complete_records(
    records: Path,
    *,
    data: Path | None,
    results: Path,
    only: Sequence[str] = (),
    jobs: int | None = None,
    say: Say,
    progress: Progress,
) -> None:
    """Complete every record whose word and table metrics are missing or of an older version.

    `only` names tasks, or folders of records; empty stands for all. Explainers of one table run
    together. Their results are below `results`, so that a completion that was stopped continues.
    A record that cannot be completed is named, and left as it is.
    """
    due = _find_due(records, only)
    for one in due:
        if is_control(one.stored.record.explainer.name) and _has_measures(one.stored.record):
            measures = measures_per_example()
            _write(one, {}, [m for m in measures if m.name in one.stored.record.metrics])
            say(f"{one.inside}: has no {', '.join(m.name for m in measures)}, as it is a control")
    waiting = [one for one in _find_due(records, only) if one.is_waiting]
    if not waiting:
        say(
            "all records have the current version of all metrics of words and scores, and the cost "
            "of their explainer's current revision"
        )
    for group in _groups(waiting):
        _complete_group(group, data, results, jobs, say, progress)


def due_metrics(record: Record) -> tuple[Metric, ...]:
    """Return the word and table metrics whose current version a record of `all` should have."""
    there = {
        None: True,
        "rationale": record.task.rationale != "none",
        "sentences": record.task.rationale != "none"
        and load_task(record.task.name).rationale_unit == "sentences",
        "seeds": len(record.seeds) > 1,
    }
    every = text_metrics(METRICS.values())
    # A record without any of them was made without them on purpose: faithfulness alone, say.
    wanted = any(metric.name in record.metrics for metric in every)
    found = []
    for metric in every:
        facts = record.metrics.get(metric.name)
        missing = facts is None and not metric.opt_in and there.get(metric.need, False) and wanted
        if missing or (facts is not None and facts.version < metric.version):
            found.append(metric)
    return tuple(found)


def due_revision(record: Record) -> int | None:
    """Return the current revision of a record's explainer, if the record is of an older one."""
    selected = _selected(record)
    outdated = selected is not None and record.explainer.revision < selected.revision
    return selected.revision if selected is not None and outdated else None


def _find_due(records: Path, only: Sequence[str]) -> list[DueRecord]:
    """Return the records that lack something, refusing a name that none of them has."""
    if not records.is_dir():
        raise FaithbenchError(f"records folder {records} does not exist; check --records")
    every = [
        DueRecord(inside, StoredRecord(path, record), due_metrics(record), due_revision(record))
        for path, inside in record_files(records)
        for record in [read(path)]
    ]
    names = {name for one in every for name in (one.table, one.stored.record.task.name)}
    for name in only:
        if name not in names:
            raise unknown("task or folder of records", name, names)
    return [
        one
        for one in every
        if (not only or {one.table, one.stored.record.task.name} & set(only))
        and (one.is_waiting or is_control(one.stored.record.explainer.name))
    ]


def _has_measures(record: Record) -> bool:
    return any(
        m.name in record.metrics and record.metrics[m.name].n for m in measures_per_example()
    )


def _groups(due: Sequence[DueRecord]) -> Iterator[list[DueRecord]]:
    """Yield records that one run can complete: same conditions, seeds, metrics, kind of need."""
    groups: dict[tuple[object, ...], list[DueRecord]] = {}
    for one in due:
        names = tuple(metric.name for metric in one.metrics)
        costs = one.revision is not None
        key = (one.table, one.stored.conditions, one.stored.record.seeds, names, costs)
        groups.setdefault(key, []).append(one)
    yield from groups.values()


def _complete_group(
    group: Sequence[DueRecord],
    data: Path | None,
    results: Path,
    jobs: int | None,
    say: Say,
    progress: Progress,
) -> None:
    """Run the explainers of some records again, and complete those that still explain alike."""
    from faithbench.run.job import Cell
    from faithbench.run.request import make_job

    first = group[0].stored
    chosen = {one.inside: _selected(one.stored.record) for one in group}
    known = []
    for one in group:
        selected = chosen[one.inside]
        if selected is None:
            say(f"{one.inside}: left as it is, its explainer does not come with faithbench")
        elif one.revision is not None and not _is_named_after(one.stored.path, selected):
            say(f"{one.inside}: left as it is, its explainer has other defaults now: run it again")
        else:
            known.append(one)
    if not known:
        return
    say(f"{group[0].table}: {len(known)} records lack {group[0].lacks}")
    explainers = [chosen[one.inside] for one in known]
    metrics = [metric.name for metric in group[0].metrics]
    if group[0].revision is not None:
        metrics += [metric.name for metric in find_metrics("speed")]
    try:
        job = make_job(_request(first.record, explainers, metrics, data, results))
    except FaithbenchError as error:  # its model is not here, say: other tables go on
        say(f"{group[0].table}: {len(known)} records left as they are, {error}")
        return
    if job.conditions != first.conditions:
        fields = ", ".join(map(describe_field, differing([job.conditions, first.conditions])))
        say(f"{group[0].table}: left as it is, it was measured with another {fields}")
        return
    _run_missing(job, jobs, progress)
    cells = {cell.selected.label: cell for cell in (Cell(job, s) for s in job.explainers)}
    for one in known:
        selected = chosen[one.inside]
        assert selected is not None
        cell = cells[selected.label]
        path = cell.folder / f"{cell.stem}.json"
        say(f"{one.inside}: {_complete(one, StoredRecord(path, read(path)))}")


def _selected(record: Record) -> Selected | None:
    """Return the explainer of a record; None for one that faithbench does not come with."""
    from faithbench.explainers.selection import find_explainers

    facts = record.explainer
    if facts.package not in ("faithbench", "captum"):
        return None
    try:
        (found,) = find_explainers(facts.name)
        explainer = replace(found.explainer, **facts.settings)  # type: ignore[type-var]  # the protocol cannot say dataclass
        return replace(found, explainer=explainer)
    except (FaithbenchError, TypeError):  # a name or a setting that is no more
        return None


def _is_named_after(path: Path, selected: Selected) -> bool:
    """Return whether a record's file is named after its settings, as one written today is."""
    return path.stem == stem_of(selected.label, path.stem.rpartition("-")[2])


def _request(
    record: Record,
    explainers: Sequence[object],
    metrics: Sequence[str],
    data: Path | None,
    results: Path,
) -> Request:
    from faithbench.run.request import Request

    task, model = record.task, record.model
    ref = load_task(task.name).models.get(task.source)
    return Request(
        explainer=list(explainers),
        task=task.name,
        # The task's own model is loaded at its revision.
        model=None if ref is not None and ref.name == model.name else model.name,
        data=data if task.source == "folder" else None,
        source=task.source,
        split=task.split,
        limit=task.n,
        metrics=",".join(metrics),
        operator=record.protocol.operator,
        dtype=model.dtype,
        seed=record.seeds[0],
        seeds=len(record.seeds),
        human=False,
        long=record.protocol.long,
        results=results,
    )


def _run_missing(job: Job, jobs: int | None, progress: Progress) -> None:
    """Run the explainers that have no record among the results yet."""
    from faithbench.run.backends import choose_backend
    from faithbench.run.job import Cell
    from faithbench.run.loop import run

    cells = [Cell(job, selected) for selected in job.explainers]
    missing = [c.selected for c in cells if not (c.folder / f"{c.stem}.json").is_file()]
    if missing:
        backend = choose_backend(jobs, str(job.model.device))
        run(replace(job, explainers=tuple(missing)), progress, backend)


def _complete(due: DueRecord, fresh: StoredRecord) -> str:
    """Merge new values into a record if the explanation is the same, and say what was done."""
    old, new = due.stored, {row.id: row for row in fresh.rows}
    encoder = fresh.record.protocol.encoder
    if encoder and old.record.protocol.encoder not in (None, encoder):
        return f"left as it is, it was measured with encoder {old.record.protocol.encoder}"
    compared = [row for row in old.rows if row.scores]
    if not all(_same_prediction(row, new[row.id]) for row in old.rows):
        return "left as it is, the model predicts something else now: run it again"
    differ = sum(not _same_scores(row, new[row.id]) for row in compared)
    if differ > MOST_DIFFERING * len(compared):
        return f"left as it is, {differ} of {len(compared)} explanations changed: run it again"
    path = _write(due, new, due.metrics, encoder, None if due.revision is None else fresh.record)
    moved = "" if path == old.path else f" as {path.name}"
    return f"completed{moved}, {differ} of {len(compared)} explanations differ"


def _same_prediction(old: ResultRow, new: ResultRow) -> bool:
    return old.target == new.target and abs(old.probability - new.probability) < TOLERANCE


def _same_scores(old: ResultRow, new: ResultRow) -> bool:
    """Return whether scores are the published ones, but for what machines differ in."""
    if old.tokens != new.tokens:
        return False
    was, now = np.array(old.scores), np.array(new.scores)
    return bool(np.abs(now - was).max() <= TOLERANCE * np.abs(was).max())


def _write(
    due: DueRecord,
    new: Mapping[str, ResultRow],
    metrics: Sequence[Metric],
    encoder: str | None = None,
    costs: Record | None = None,
) -> Path:
    """Write rows and record with the new values, and return the record's path.

    Values that `new` does not have become null. The explainer's revision, its cost and its times
    are those of the record `costs`, where there is one. Versions of metrics and the revision are a
    part of a record's name, so that a completed record may have another one; the old files are
    removed last.
    """
    stored = due.stored
    old_rows = stored.path.with_name(stored.record.rows.file)
    key, rows = read_keyed_rows(old_rows, stored.record.rows.sha256)
    names = [metric.name for metric in metrics]
    rows = tuple(_with_values(row, new.get(row.id), names) for row in rows)
    if costs is not None:
        rows = tuple(_with_cost(row, new[row.id]) for row in rows)
    proxy = stored.record.task.rationale == "proxy"
    facts = {metric.name: metric_facts(metric, rows, proxy=proxy) for metric in metrics}
    protocol = stored.record.protocol
    record = stored.record.model_copy(
        update={
            "metrics": stored.record.metrics | facts,
            "protocol": protocol.model_copy(update={"encoder": protocol.encoder or encoder}),
        }
    )
    if costs is not None:
        explainer = record.explainer.model_copy(update={"revision": costs.explainer.revision})
        record = record.model_copy(
            update={"explainer": explainer, "cost": cost_facts(rows), "timing": costs.timing}
        )
    path = stored.path.with_name(
        f"{renamed_stem(stored.path.stem, stored.record, record, rows)}.json"
    )
    packed = path.with_name(f"{path.stem}.rows.jsonl.gz")
    lines = to_header(key) + b"".join(to_line(row) for row in rows)
    try:
        replace_file(packed, gzip.compress(lines, mtime=0))
        named = RowsFacts(file=packed.name, sha256=file_sha256(packed))
        replace_file(path, dumps(record.model_copy(update={"rows": named})).encode())
        for left in {stored.path, old_rows} - {path, packed}:
            left.unlink()
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {path}: {reason(error)}; choose another folder with --records"
        ) from error
    return path


def _with_values(row: ResultRow, new: ResultRow | None, names: Sequence[str]) -> ResultRow:
    """Return a row with the values of some metrics taken from another, or null."""
    kept = {name: seeds for name, seeds in row.by_seed.items() if name not in names}
    taken = {} if new is None else {n: s for n, s in new.by_seed.items() if n in names}
    values = {name: None if new is None else new.values[name] for name in names}
    return msgspec.structs.replace(row, values=row.values | values, by_seed=kept | taken)


def _with_cost(row: ResultRow, new: ResultRow) -> ResultRow:
    """Return a row with the explainer's passes taken from another; rows of metrics stay."""
    return msgspec.structs.replace(
        row, forwards=new.forwards, backwards=new.backwards, elsewhere=new.elsewhere
    )

"""From the rows of a cell to its record: metrics over all examples, timing, and facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import faithbench
from faithbench.core.types import Encoding
from faithbench.data.dataset import Dataset
from faithbench.data.rationales import rationale_coverage
from faithbench.explainers.protocol import replayed_seconds
from faithbench.explainers.selection import Selected
from faithbench.metrics.cost import wants_timing
from faithbench.metrics.explained import ExplainedTexts, FindNeighbours
from faithbench.metrics.kinds import TextMetric
from faithbench.metrics.registry import text_metrics
from faithbench.metrics.word_scores import words_of
from faithbench.models.devices import allows_tf32
from faithbench.models.session import Session
from faithbench.records.provenance import environment, source_state
from faithbench.records.record import write
from faithbench.records.rows import ResultRow, add_values
from faithbench.records.rows_writer import RowsFile
from faithbench.records.schema import (
    PROTOCOL,
    SCHEMA,
    ExplainerFacts,
    ModelFacts,
    ProtocolFacts,
    Record,
    RowsFacts,
    SpanFacts,
    TaskFacts,
    TimingFacts,
)
from faithbench.records.summary import (
    accuracy_of,
    cost_facts,
    largest_gap_of,
    metric_facts,
    tpr_drop_of,
)
from faithbench.run.job import Cell, sample_by_length
from faithbench.run.measures.speed import measure_alone
from faithbench.run.neighbours import Nearest


@dataclass(frozen=True)
class Outcome:
    """A finished cell: its record, where that is, and the rows behind it."""

    selected: Selected
    record: Record
    path: Path
    rows: tuple[ResultRow, ...]


@dataclass(frozen=True)
class Measured:
    """The contents of a cell's record before it is written."""

    rows: tuple[ResultRow, ...]
    timing: TimingFacts
    rationale_share: float | None


def measure(
    session: Session, cell: Cell, file: RowsFile, encodings: Sequence[Encoding], near: Nearest
) -> Measured:
    """Add the metrics that compare examples to the rows, and measure the explainer's speed."""
    rows = [file.done[e.example.id] for e in encodings]
    table = explained_texts(encodings, rows, near)
    values = text_values(text_metrics(cell.job.metrics), table)
    rows = [add_values(row, added) for row, added in zip(rows, values, strict=True)]
    seconds = [file.seconds[row.id] for row in rows if row.id in file.seconds]
    return Measured(tuple(rows), _timing(session, cell, encodings, rows, sum(seconds)), table.share)


def finish(
    cell: Cell,
    file: RowsFile,
    measured: Measured,
    encodings: Sequence[Encoding],
    encoder: str | None,
) -> Outcome:
    """Write the rows in the examples' order, then the record; unfinished rows are removed last."""
    final = cell.folder / f"{cell.stem}.rows.jsonl"
    digest = file.finish(measured.rows, final)
    record = make_record(
        cell=cell,
        rows=measured.rows,
        timing=measured.timing,
        rows_file=(final.name, digest),
        truncated=sum(e.truncated > 0 for e in encodings),
        threads=torch.get_num_threads(),
        spans=spans_of(cell.job.data, encodings),
        rationale_share=measured.rationale_share,
        encoder=encoder,
    )
    path = cell.folder / f"{cell.stem}.json"
    write(record, path)
    file.discard()
    return Outcome(cell.selected, record, path, measured.rows)


def _timing(
    session: Session,
    cell: Cell,
    encodings: Sequence[Encoding],
    rows: Sequence[ResultRow],
    total: float,
) -> TimingFacts:
    """Measure the explainer alone on a sample, if its speed is wanted and it is at hand."""
    budget = None if session.model.device.type == "cpu" else session.engine.budget
    if cell.selected.replayed:
        seconds = replayed_seconds(cell.selected.explainer)
        return TimingFacts(seconds_total=seconds, token_budget=budget)
    if not wants_timing(cell.job.metrics):
        return TimingFacts(seconds_total=total, token_budget=budget)
    targets = {row.id: row.target for row in rows}
    sample = sample_by_length(encodings)
    speed = measure_alone(
        session,
        cell.selected.explainer,
        sample,
        [targets[e.example.id] for e in sample],
        cell.job.seed,
    )
    return TimingFacts(
        alone=len(sample),
        seconds_median=speed.median,
        seconds_ci95=speed.interval,
        peak_memory_bytes=speed.peak_bytes,
        seconds_total=total,
        token_budget=budget,
    )


def spans_of(data: Dataset, encodings: Sequence[Encoding]) -> SpanFacts | None:
    """Count what the model reads of the rationales, where there are any."""
    if data.rationale == "none":
        return None
    found = rationale_coverage(encodings)
    return SpanFacts(whole=found.whole, cut=found.cut, lost=found.lost)


def make_record(
    *,
    cell: Cell,
    rows: Sequence[ResultRow],
    timing: TimingFacts,
    rows_file: tuple[str, str],
    truncated: int,
    threads: int,
    spans: SpanFacts | None = None,
    rationale_share: float | None = None,
    encoder: str | None = None,
) -> Record:
    """Summarise rows, and add the facts of task, model, explainer and machine."""
    job, selected = cell.job, cell.selected
    data, model, n = job.data, job.model, len(rows)
    return Record(
        schema=SCHEMA,
        task=TaskFacts(
            name=data.task.name,
            version=data.task.version,
            kind=data.task.kind,
            split=data.split,
            n=n,
            source=data.source,
            data_sha256=data.sha256,
            data_checked=data.checked,
            rationale=data.rationale,
            rationale_share=None if rationale_share is None else round(rationale_share, 9),
            spans=spans,
        ),
        model=ModelFacts(
            name=model.public_name,
            revision=model.revision,
            sha256=model.sha256,
            weights_sha256=model.weights_sha256,
            dtype=job.conditions.dtype,
            accuracy=accuracy_of(rows),
            truncated=truncated,
            labels=model.labels,
            tpr_drop=tpr_drop_of(rows),
            precision=job.precision,
        ),
        explainer=ExplainerFacts(
            name=selected.name,
            package=selected.package,
            version=selected.version,
            settings=dict(selected.settings),
            assets=cell.assets,
            largest_gap=largest_gap_of(rows),
            revision=selected.revision,
        ),
        seeds=cell.seeds,
        protocol=ProtocolFacts(
            version=PROTOCOL,
            operator=job.operator,
            erasure_token=job.conditions.erasure_token,
            long=job.long,
            encoder=encoder,
        ),
        metrics={
            metric.name: metric_facts(metric, rows, proxy=data.rationale == "proxy")
            for metric in job.metrics
            if metric.name in rows[0].values
        },
        rows=RowsFacts(file=rows_file[0], sha256=rows_file[1]),
        cost=cost_facts(rows),
        timing=timing,
        environment=environment(
            str(model.device), threads, allows_tf32(model.device), model.compiled or None
        ),
        source=source_state(Path(faithbench.__file__).parents[1]),
    )


def explained_texts(
    encodings: Sequence[Encoding], rows: Sequence[ResultRow], neighbours: FindNeighbours
) -> ExplainedTexts:
    """Read the words back from the rows of a run, scores rounded as they are there."""
    seeds = [
        [
            words_of(encoding, np.array((row.scores, *row.more_scores)[seed], dtype=np.float64))
            for encoding, row in zip(encodings, rows, strict=True)
        ]
        for seed in range(1 + len(rows[0].more_scores))
    ]
    return ExplainedTexts.of_seeds(seeds, [e.example for e in encodings], neighbours)


def text_values(
    metrics: Sequence[TextMetric], table: ExplainedTexts
) -> list[dict[str, list[float | None]]]:
    """Return for each example each metric's value under every seed.

    A metric that compares the seeds has one value for all of them.
    """
    values: list[dict[str, list[float | None]]] = [{} for _ in table.words]
    by_seed = table.by_seed()
    for metric in metrics:
        views = by_seed if metric.per_seed else (table,)
        columns = [metric.values(view) for view in views]
        for example, under_seeds in zip(values, zip(*columns, strict=True), strict=True):
            example[metric.name] = list(under_seeds)
    return values

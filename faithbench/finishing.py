"""From the rows of a cell to its record: what all examples together say, and what was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from faithbench.cells import Cell
from faithbench.checkpoint import RowsFile
from faithbench.data import Dataset
from faithbench.explained import explained_of, table_values
from faithbench.metrics import table_metrics
from faithbench.nearest import Nearest
from faithbench.probes import asked
from faithbench.rationales import readings
from faithbench.records import Record, SpanFacts, TimingFacts, write
from faithbench.reporting import make_record
from faithbench.row_files import times_path
from faithbench.rows import Row, add_values
from faithbench.selection import Chosen
from faithbench.speed import measure_alone, spread
from faithbench.types import Encoding


@dataclass(frozen=True)
class Outcome:
    """A finished cell: its record, where that is, and the rows behind it."""

    chosen: Chosen
    record: Record
    path: Path
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Measured:
    """All that a record of a cell is made of, still unwritten."""

    rows: tuple[Row, ...]
    timing: TimingFacts
    rationale_share: float | None


def measure(cell: Cell, file: RowsFile, encodings: Sequence[Encoding], near: Nearest) -> Measured:
    """Complete the rows by what all examples together say, and measure the explainer's speed."""
    rows = [file.done[e.example.id] for e in encodings]
    table = explained_of(encodings, rows, near)
    values = table_values(table_metrics(cell.job.metrics), table)
    rows = [add_values(row, own) for row, own in zip(rows, values, strict=True)]
    seconds = [file.seconds[row.id] for row in rows if row.id in file.seconds]
    return Measured(tuple(rows), _timing(cell, encodings, rows, sum(seconds)), table.share)


def finish(
    cell: Cell, file: RowsFile, found: Measured, encodings: Sequence[Encoding], encoder: str | None
) -> Outcome:
    """Move the rows into place in the examples' order, and write the record last."""
    digest = file.finish(found.rows)
    partial, final = partial_path(cell), cell.folder / f"{cell.stem}.rows.jsonl"
    times_path(partial).replace(times_path(final))
    partial.replace(final)
    record = make_record(
        cell=cell,
        rows=found.rows,
        timing=found.timing,
        rows_file=(final.name, digest),
        truncated=sum(e.truncated > 0 for e in encodings),
        threads=torch.get_num_threads(),
        spans=spans_of(cell.job.data, encodings),
        rationale_share=found.rationale_share,
        encoder=encoder,
    )
    path = cell.folder / f"{cell.stem}.json"
    write(record, path)
    return Outcome(cell.chosen, record, path, found.rows)


def partial_path(cell: Cell) -> Path:
    """Return where the rows of a cell grow."""
    return cell.folder / ".partial" / f"{cell.stem}-{cell.key[:8]}.rows.jsonl"


def _timing(
    cell: Cell, encodings: Sequence[Encoding], rows: Sequence[Row], total: float
) -> TimingFacts:
    """Measure the explainer alone on a sample, if its speed is wanted and it is at hand."""
    if cell.chosen.replayed:
        return TimingFacts(seconds_total=getattr(cell.chosen.explainer, "seconds", None))
    if not asked(cell.job, "seconds") and not asked(cell.job, "peak_memory"):
        return TimingFacts(seconds_total=total)
    targets = {row.id: row.target for row in rows}
    sample = spread(encodings)
    speed = measure_alone(
        cell.job.model,
        cell.chosen.explainer,
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
    )


def spans_of(data: Dataset, encodings: Sequence[Encoding]) -> SpanFacts | None:
    """Count what the model reads of the rationales, where there are any."""
    if data.rationale == "none":
        return None
    found = readings(encodings)
    return SpanFacts(whole=found.whole, cut=found.cut, lost=found.lost)

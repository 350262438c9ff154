"""The straight line of a run: examples, attributions, metric values, records."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

from faithbench.attribution import attribute, seed_of
from faithbench.bounds import BoundsFile
from faithbench.cells import Cell, Job
from faithbench.checkpoint import RowsFile, open_rows
from faithbench.encoding import collate, encode
from faithbench.files import check_writable
from faithbench.forward import Engine, engine_of
from faithbench.rationales import readings
from faithbench.records import Record, SpanFacts, write
from faithbench.reporting import make_record
from faithbench.rows import Row, make_row, times_path
from faithbench.scoring import Bounds, score
from faithbench.selection import Chosen
from faithbench.sharing import release
from faithbench.targets import Prediction, predictions
from faithbench.types import Batch, Encoding
from faithbench.windows import fold, parts_of

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Outcome:
    """A finished cell: its record, where that is, and the rows behind it."""

    chosen: Chosen
    record: Record
    path: Path
    rows: tuple[Row, ...]


def run(job: Job, progress: Progress) -> list[Outcome]:
    """Compute every cell of a job; what a killed run had finished is kept."""
    cells = [Cell(job, chosen) for chosen in job.explainers]
    for folder in {cell.folder for cell in cells}:
        check_writable(folder)
        check_writable(folder / ".partial")
    evidence = job.data.task.evidence
    encodings = [encode(job.model, e, evidence, job.long) for e in job.data.examples]
    for chosen in job.explainers:
        check = getattr(chosen.explainer, "check", None)
        if check is not None:
            check(job.model, [part for e in encodings for part in parts_of(e)])
    # Neighbours of like length waste little padding; the cut never depends on what is done.
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    chunks = [order[i : i + job.chunk] for i in range(0, len(order), job.chunk)]
    engine = engine_of(job.model)
    engine.budget = job.budget
    engine.forget()
    with ExitStack() as stack:
        files = [stack.enter_context(open_rows(_partial(cell), cell.key)) for cell in cells]
        warm = False
        for number, chunk in enumerate(chunks):
            if any(e.example.id not in file.done for file in files for e in chunk):
                if not warm:
                    _warm_up(job, chunk[:1])
                    warm = True
                _compute(job, engine, chunk, cells, files)
            progress("explaining", number + 1, len(chunks))
        return [_finish(cell, file, encodings) for cell, file in zip(cells, files, strict=True)]


def _warm_up(job: Job, chunk: Sequence[Encoding]) -> None:
    """Call each explainer once outside the clock: first calls build copies and kernels."""
    targets = [p.target for p in predictions(engine_of(job.model), chunk)]
    batch = collate(job.model, [parts_of(e)[0] for e in chunk], targets, [0])
    for chosen in job.explainers:
        attribute(job.model, chosen, batch)
    release(job.model)
    engine_of(job.model).forget()


def _compute(
    job: Job,
    engine: Engine,
    chunk: Sequence[Encoding],
    cells: Sequence[Cell],
    files: Sequence[RowsFile],
) -> None:
    """Explain and score one chunk for all cells together, and append what is missing.

    The whole chunk is computed even if some cells have it: batches are then the same as in
    an uninterrupted run, and so is every bit of the result.
    """
    model = job.model
    said = predictions(engine, chunk)
    batch = _batch(job, chunk, said)
    found = [fold(chunk, attribute(model, cell.chosen, batch)) for cell in cells]
    release(model)
    flat = [attribution for attributions in found for attribution in attributions]
    full = [p.log_f for p in said]
    bounds = _bounds(job, engine, chunk, said)
    scored = score(engine, flat, full * len(cells), job.metrics, job.operator, bounds * len(cells))
    engine.forget()
    for index, (file, attributions) in enumerate(zip(files, found, strict=True)):
        own = scored[index * len(chunk) : (index + 1) * len(chunk)]
        rows = []
        for attribution, result, prediction in zip(attributions, own, said, strict=True):
            encoding = attribution.encoding
            row = make_row(
                id=encoding.example.id,
                target=attribution.target,
                label=encoding.example.label,
                right=prediction.right,
                probability=math.exp(prediction.log_f),
                tokens=model.tokenizer.convert_ids_to_tokens(
                    encoding.ids[encoding.erasable].tolist()
                ),
                scores=attribution.scores,
                values=result.values,
                rows_asked=result.rows_asked,
                distinct_rows=result.distinct_rows,
                forwards=attribution.forwards,
                backwards=attribution.backwards,
                gap=attribution.gap,
            )
            rows.append((row, attribution.seconds))
        file.append([(row, seconds) for row, seconds in rows if row.id not in file.done])


def _batch(job: Job, chunk: Sequence[Encoding], said: Sequence[Prediction]) -> Batch:
    """Put what the model reads of a chunk into one batch, a row per window."""
    parts, targets, seeds = [], [], []
    for encoding, prediction in zip(chunk, said, strict=True):
        for number, part in enumerate(parts_of(encoding)):
            parts.append(part)
            targets.append(prediction.target)
            name = encoding.example.id
            seeds.append(seed_of(job.seed, f"{name}, window {number}" if number else name))
    return collate(job.model, parts, targets, seeds)


def _bounds(
    job: Job, engine: Engine, chunk: Sequence[Encoding], said: Sequence[Prediction]
) -> list[Bounds | None]:
    """Find the bounds of each input, if a metric asks for them; they serve all explainers."""
    if not any(metric.needs_bounds for metric in job.metrics):
        return [None] * len(chunk)
    known = BoundsFile.open(job.results, job.model)
    return [known.find(engine, e, p, job.operator) for e, p in zip(chunk, said, strict=True)]


def _finish(cell: Cell, file: RowsFile, encodings: Sequence[Encoding]) -> Outcome:
    """Put the rows in the examples' order, move them into place, write the record last."""
    job = cell.job
    ids = [e.id for e in job.data.examples]
    rows = tuple(file.done[i] for i in ids)
    seconds = [file.seconds[i] for i in ids if i in file.seconds]
    digest = file.finish(ids)
    partial, final = _partial(cell), cell.folder / f"{cell.stem}.rows.jsonl"
    times_path(partial).replace(times_path(final))
    partial.replace(final)
    record = make_record(
        data=job.data,
        model=job.model,
        chosen=cell.chosen,
        assets=cell.assets,
        metrics=job.metrics,
        operator=job.operator,
        long=job.long,
        seed=job.seed,
        rows=rows,
        seconds=seconds,
        rows_file=(final.name, digest),
        truncated=sum(e.truncated > 0 for e in encodings),
        threads=torch.get_num_threads(),
        precision=job.precision,
        spans=_spans(job, encodings),
    )
    path = cell.folder / f"{cell.stem}.json"
    write(record, path)
    return Outcome(cell.chosen, record, path, rows)


def _spans(job: Job, encodings: Sequence[Encoding]) -> SpanFacts | None:
    """Count what the model reads of the rationales, where there are any."""
    if job.data.rationale == "none":
        return None
    found = readings(encodings)
    return SpanFacts(whole=found.whole, cut=found.cut, lost=found.lost)


def _partial(cell: Cell) -> Path:
    return cell.folder / ".partial" / f"{cell.stem}-{cell.key[:8]}.rows.jsonl"

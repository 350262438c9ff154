"""The straight line of a run: examples, attributions, metric values, records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from faithbench.core.errors import CannotServeError, RefusedError, telling_kept
from faithbench.core.files import check_writable
from faithbench.core.types import Batch, Encoding, Progress
from faithbench.data.windows import inputs_read
from faithbench.explainers.protocol import assets_of, check_inputs
from faithbench.metrics.registry import case_metrics
from faithbench.models.encoding import encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.rows_writer import RowsFile, open_rows
from faithbench.run.attribute import attribute
from faithbench.run.backends import Backend
from faithbench.run.backends.serial import Serial
from faithbench.run.chunk import (
    ERASED_ROWS,
    Chunk,
    batch_of,
    cut_chunks,
    name_of,
    weights_per_token,
)
from faithbench.run.estimate import Estimate, expected, in_words, work_alone
from faithbench.run.finish import Outcome, finish, measure
from faithbench.run.job import Cell, Job, partial_path
from faithbench.run.measures.aopc_bounds import append_bounds, read_bounds
from faithbench.run.neighbours import Nearest
from faithbench.run.score import score
from faithbench.run.shard import WHOLE, Shard

Value = TypeVar("Value")

_COLD = 1.0
"""Seconds of a first call below which it says little about the next ones."""


@dataclass(frozen=True)
class Served:
    """What a run came to: outcomes, and why explainers were left out, by their labels."""

    outcomes: tuple[Outcome, ...]
    left_out: Mapping[str, str]


def run_serving(
    job: Job, progress: Progress, backend: Backend | None = None, *, fresh: bool = False
) -> Served:
    """Run a job without the explainers that cannot serve its model; raise RefusedError if none can.

    Human rationales take part of their own accord, so they alone are no run. What serves is a job
    of its own: its files are those of a run that was never asked for the others.
    """
    outcomes, _, left_out = serve(job, lambda serving: run(serving, progress, backend, fresh=fresh))
    return Served(tuple(outcomes), left_out)


def run_shard(
    job: Job,
    shard: Shard,
    progress: Progress,
    backend: Backend | None = None,
    *,
    fresh: bool = False,
) -> Job:
    """Compute the rows of one shard, and return the job of the explainers that serve the model.

    The rows stay where they grow, in the shard's own folder below the results; `run.merge` makes
    the records.
    """
    job = replace(job, results=job.results / shard.folder)

    def compute(serving: Job) -> None:
        with _opened(serving, backend or Serial(), progress, fresh=fresh) as opened:
            _compute(opened, serving, progress, shard)

    _, served, _ = serve(job, compute)
    return served


def serve(job: Job, work: Callable[[Job], Value]) -> tuple[Value, Job, dict[str, str]]:
    """Do a piece of work with the explainers that serve the model; return them and why not all."""
    asked, left_out = job.explainers, dict[str, str]()
    while True:
        try:
            return work(job), job, left_out
        except RefusedError as refused:
            reasons = left_out | refused.reasons
            left_out = {one.label: reasons[one.label] for one in asked if one.label in reasons}
            serving = tuple(one for one in job.explainers if one.label not in left_out)
            if all(one.name == "human" for one in serving):
                raise RefusedError(job.model.public_name, left_out) from None
            job = replace(job, explainers=serving)


def run(
    job: Job, progress: Progress, backend: Backend | None = None, *, fresh: bool = False
) -> list[Outcome]:
    """Compute every cell of a job; rows that a killed run had finished are kept, unless `fresh`.

    If explainers cannot serve the model, nothing is computed, and RefusedError names them all.
    """
    with _opened(job, backend or Serial(), progress, fresh=fresh) as opened:
        _compute(opened, job, progress)
        session, encodings, files = opened.session, opened.encodings, opened.files
        cells = len(job.cells)
        targets = [files[0].done[e.example.id].target for e in encodings]
        device = str(job.model.device)
        nearest = Nearest(job.data, job.results, targets, job.encoder, device, progress)
        measured = []
        for number, (cell, file) in enumerate(zip(job.cells, files, strict=True)):
            progress(f"measuring {name_of(cell)}", number, cells)
            measured.append(measure(session, cell, file, encodings, nearest))
        progress("measuring", cells, cells)
        # Quick, and all together: a run killed before this has its rows, after it its records.
        return [
            finish(cell, file, facts, encodings, nearest.encoder_used)
            for cell, file, facts in zip(job.cells, files, measured, strict=True)
        ]


@dataclass(frozen=True)
class _Opened:
    """A job that is ready to be computed: its texts, and the rows files of its cells."""

    backend: Backend
    session: Session
    encodings: list[Encoding]
    files: list[RowsFile]


@contextmanager
def _opened(
    job: Job, backend: Backend, progress: Progress, *, fresh: bool = False
) -> Iterator[_Opened]:
    """Encode the texts, let explainers refuse them, and open the rows files."""
    for folder in {cell.folder for cell in job.cells}:
        check_writable(folder)
        check_writable(folder / ".partial")
    examples, cells = len(job.data.examples), len(job.cells)
    size = f"{examples} example{'s' * (examples > 1)} x {cells} explainer{'s' * (cells > 1)}"
    progress(f"{size} on {job.model.public_name}", 0, 0)
    evidence = job.data.task.evidence
    encodings = [encode(job.model, e, evidence, job.long) for e in job.data.examples]
    check_explainers(job, encodings)
    with ExitStack() as stack:
        stack.enter_context(torch_threads(backend.threads))
        session = stack.enter_context(Session(job.model, job.budget))
        session.tune()
        files = [
            stack.enter_context(open_rows(partial_path(cell), cell.key, fresh=fresh))
            for cell in job.cells
        ]
        if damaged := sum(file.damaged for file in files):
            progress(f"{damaged} damaged rows of an earlier run are computed again", 0, 0)
        stack.enter_context(
            telling_kept(lambda: min(len(file.done) for file in files), len(encodings))
        )
        yield _Opened(backend, session, encodings, files)


def _compute(opened: _Opened, job: Job, progress: Progress, shard: Shard = WHOLE) -> None:
    """Compute a shard's chunks that are not complete in all files, and append their rows."""
    session, encodings, files = opened.session, opened.encodings, opened.files
    done = set.intersection(*(set(file.done) for file in files))
    if all(encoding.example.id in done for encoding in encodings):
        return
    try:
        warm = warm_up(session, job, encodings, progress)
    except RefusedError:
        for file in files:
            file.drop_if_empty()
        raise
    bounds = read_bounds(job.results, job.model)
    chunks = shard.part(cut_chunks(job, encodings, warm.costs, bounds))
    missing = [c for c in chunks if any(e.example.id not in done for e in c.encodings)]
    total = sum(len(c.encodings) for c in chunks)
    complete = total - sum(len(c.encodings) for c in missing)
    progress(_outlook(opened, job, warm, missing), 0, 0)
    progress("explained", complete, total)
    estimate = Estimate(sum(chunk.work for chunk in missing))

    def tell(what: str, done: int) -> None:
        progress(f"{what}{estimate}", complete + done, total)

    # Closed here, not when it is collected: workers hold the locks of the files.
    with closing(opened.backend.compute(session, job, missing, tell)) as results:
        for chunk, computed in zip(missing, results, strict=True):
            append_bounds(job.results, job.model, computed.bounds)
            for file, rows in zip(files, computed.rows, strict=True):
                file.append([(row, seconds) for row, seconds in rows if row.id not in file.done])
            complete += len(chunk.encodings)
            estimate.add(chunk.work)
            progress(f"explained{estimate}", complete, total)


def check_explainers(job: Job, encodings: Sequence[Encoding]) -> None:
    """Let explainers refuse the model or its inputs before any work is done."""
    parts = [part for encoding in encodings for part in inputs_read(encoding)]
    with _refusals(job) as reasons:
        for selected in job.explainers:
            try:
                check_inputs(selected.explainer, job.model, parts)
                assets_of(selected.explainer, job.model)  # files that a model may lack
            except CannotServeError as error:
                reasons[selected.label] = str(error)


@contextmanager
def _refusals(job: Job) -> Iterator[dict[str, str]]:
    """Collect why explainers refuse, by label, and raise them together at the end."""
    reasons: dict[str, str] = {}
    yield reasons
    if reasons:
        raise RefusedError(job.model.public_name, reasons)


@dataclass(frozen=True)
class WarmUp:
    """What explainers took for a text of usual length: forward equivalents, a number per cell.

    `rate` is multiply-adds per second: of the costliest one, or of the metrics if these take more;
    None where that cannot be tried.
    """

    costs: tuple[float, ...]
    rate: float | None


def _outlook(opened: _Opened, job: Job, warm: WarmUp, missing: Sequence[Chunk]) -> str:
    """Say what is to be computed, and about how long that takes."""
    rows = f"about {float(f'{sum(chunk.rows for chunk in missing):.2g}'):,.0f} rows"
    if warm.rate is None:
        return f"{rows} through the network"
    alone = work_alone(job, opened.encodings, warm.costs)
    seconds, workers = expected(opened.backend, missing, alone, warm.rate)
    processes = f"{workers} process{'es' * (workers > 1)}"
    return f"{rows} through the network, {in_words(seconds)} with {processes}"


def warm_up(
    session: Session, job: Job, encodings: Sequence[Encoding], progress: Progress
) -> WarmUp:
    """Call each explainer once outside the clock: first calls build copies and kernels.

    Here explainers refuse a model that they cannot serve.
    """
    by_length = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    usual = [by_length[len(by_length) // 2]]
    batch = batch_of(job, usual, predictions(session.engine, usual), job.seed)
    costs, seconds = [], []
    with _refusals(job) as reasons:
        for number, cell in enumerate(job.cells):
            progress(f"warming up {name_of(cell)}", number, len(job.cells))
            before, start = session.meter.total, time.perf_counter()
            try:
                attribute(session, cell.selected, batch)
            except CannotServeError as error:
                reasons[cell.selected.label] = str(error)
            costs.append(session.meter.since(before).forward_equivalents)
            seconds.append(time.perf_counter() - start)
            session.clear()
    costliest = costs.index(max(costs))
    if costs[costliest] < ERASED_ROWS:
        # Then erased rows take the time, and one row of an explainer says nothing about them.
        return WarmUp(tuple(costs), _rate_of_rows(session, job, job.cells[costliest], batch))
    if seconds[costliest] < _COLD:
        start = time.perf_counter()
        attribute(session, job.cells[costliest].selected, batch)
        seconds[costliest] = time.perf_counter() - start
        session.clear()
    work = costs[costliest] * len(usual[0].ids) * weights_per_token(job.model)
    return WarmUp(tuple(costs), work / seconds[costliest])


def _rate_of_rows(session: Session, job: Job, cell: Cell, batch: Batch) -> float | None:
    """Return the multiply-adds per second at which the metrics' erased rows are computed."""
    metrics = case_metrics(job.metrics)
    encoding, engine = batch.encodings[0], session.engine
    if len(batch.encodings) > 1 or not metrics or any(m.needs_bounds for m in metrics):
        return None
    attributions = attribute(session, cell.selected, batch)
    (prediction,) = predictions(engine, [encoding])
    known = [prediction.log_probability]
    for _ in range(2):  # the second time, what the first call builds is there
        engine.forget()
        before, start = engine.distinct, time.perf_counter()
        score(engine, attributions, known, metrics, job.operator, [None])
        seconds, rows = time.perf_counter() - start, engine.distinct - before
    session.clear()
    return rows * len(encoding.ids) * weights_per_token(job.model) / seconds if rows else None


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use this number of threads inside; None leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

"""The straight line of a run: examples, attributions, metric values, records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

import torch

from faithbench.core.errors import CannotServeError, RefusedError, telling_kept
from faithbench.core.files import check_writable
from faithbench.core.types import Encoding, Progress
from faithbench.data.windows import inputs_read
from faithbench.explainers.protocol import assets_of, check_inputs
from faithbench.models.encoding import encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.rows_writer import RowsFile, open_rows
from faithbench.run.attribute import attribute
from faithbench.run.backends import Backend
from faithbench.run.backends.serial import Serial
from faithbench.run.chunk import batch_of, cut_chunks, name_of
from faithbench.run.estimate import Estimate
from faithbench.run.finish import Outcome, finish, measure
from faithbench.run.job import Job, partial_path
from faithbench.run.measures.aopc_bounds import append_bounds, read_bounds
from faithbench.run.neighbours import Nearest


@dataclass(frozen=True)
class Served:
    """What a run came to: outcomes, and why explainers were left out, by their labels."""

    outcomes: tuple[Outcome, ...]
    left_out: Mapping[str, str]


def run_serving(job: Job, progress: Progress, backend: Backend | None = None) -> Served:
    """Run a job without the explainers that cannot serve its model; raise RefusedError if none can.

    Human rationales take part of their own accord, so they alone are no run. What serves is a job
    of its own: its files are those of a run that was never asked for the others.
    """
    asked, left_out = job.explainers, dict[str, str]()
    while True:
        try:
            return Served(tuple(run(job, progress, backend)), left_out)
        except RefusedError as refused:
            reasons = left_out | refused.reasons
            left_out = {one.label: reasons[one.label] for one in asked if one.label in reasons}
            serving = tuple(one for one in job.explainers if one.label not in left_out)
            if all(one.name == "human" for one in serving):
                raise RefusedError(job.model.public_name, left_out) from None
            job = replace(job, explainers=serving)


def run(job: Job, progress: Progress, backend: Backend | None = None) -> list[Outcome]:
    """Compute every cell of a job; rows that a killed run had finished are kept.

    If explainers cannot serve the model, nothing is computed, and RefusedError names them all.
    """
    backend = backend or Serial()
    for folder in {cell.folder for cell in job.cells}:
        check_writable(folder)
        check_writable(folder / ".partial")
    examples, cells = len(job.data.examples), len(job.cells)
    size = f"{examples} example{'s' * (examples > 1)} x {cells} explainer{'s' * (cells > 1)}"
    progress(f"{size} on {job.model.public_name}", 0, 0)
    evidence = job.data.task.evidence
    encodings = [encode(job.model, e, evidence, job.long) for e in job.data.examples]
    _check(job, encodings)
    with ExitStack() as stack:
        stack.enter_context(_torch_threads(backend.threads))
        session = stack.enter_context(Session(job.model, job.budget))
        files = [stack.enter_context(open_rows(partial_path(c), c.key)) for c in job.cells]
        stack.enter_context(
            telling_kept(lambda: min(len(file.done) for file in files), len(encodings))
        )
        _compute(session, job, encodings, files, backend, progress)
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


def _compute(
    session: Session,
    job: Job,
    encodings: Sequence[Encoding],
    files: Sequence[RowsFile],
    backend: Backend,
    progress: Progress,
) -> None:
    """Compute the chunks that are not complete in all files, and append their rows."""
    done = set.intersection(*(set(file.done) for file in files))
    if all(encoding.example.id in done for encoding in encodings):
        return
    try:
        costs = _warm_up(session, job, encodings, progress)
    except RefusedError:
        for file in files:
            file.drop_if_empty()
        raise
    chunks = cut_chunks(job, encodings, costs, read_bounds(job.results, job.model))
    missing = [c for c in chunks if any(e.example.id not in done for e in c.encodings)]
    complete = sum(len(c.encodings) for c in chunks) - sum(len(c.encodings) for c in missing)
    progress("explained", complete, len(encodings))
    estimate = Estimate(sum(chunk.work for chunk in missing))

    def tell(what: str, done: int) -> None:
        progress(f"{what}{estimate}", complete + done, len(encodings))

    # Closed here, not when it is collected: workers hold the locks of the files.
    with closing(backend.compute(session, job, missing, tell)) as results:
        for chunk, computed in zip(missing, results, strict=True):
            append_bounds(job.results, job.model, computed.bounds)
            for file, rows in zip(files, computed.rows, strict=True):
                file.append([(row, seconds) for row, seconds in rows if row.id not in file.done])
            complete += len(chunk.encodings)
            estimate.add(chunk.work)
            progress(f"explained{estimate}", complete, len(encodings))


def _check(job: Job, encodings: Sequence[Encoding]) -> None:
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


def _warm_up(
    session: Session, job: Job, encodings: Sequence[Encoding], progress: Progress
) -> list[float]:
    """Call each explainer once outside the clock: first calls build copies and kernels.

    Returns the forward equivalents that each cell's explainer took for a text of usual length.
    Here explainers refuse a model that they cannot serve.
    """
    by_length = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    usual = [by_length[len(by_length) // 2]]
    batch = batch_of(job, usual, predictions(session.engine, usual), job.seed)
    costs = []
    with _refusals(job) as reasons:
        for number, cell in enumerate(job.cells):
            progress(f"warming up {name_of(cell)}", number, len(job.cells))
            before = session.meter.total
            try:
                attribute(session, cell.selected, batch)
            except CannotServeError as error:
                reasons[cell.selected.label] = str(error)
            costs.append(session.meter.since(before).forward_equivalents)
            session.clear()
    return costs


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use this number of threads inside; None leaves it as it is."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

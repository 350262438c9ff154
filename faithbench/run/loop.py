"""The straight line of a run: examples, attributions, metric values, records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

import torch

from faithbench.core.errors import telling_kept
from faithbench.core.files import check_writable
from faithbench.core.types import Encoding, Progress
from faithbench.data.windows import inputs_read
from faithbench.explainers.protocol import check_inputs
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


def run(job: Job, progress: Progress, backend: Backend | None = None) -> list[Outcome]:
    """Compute every cell of a job; rows that a killed run had finished are kept."""
    backend = backend or Serial()
    for folder in {cell.folder for cell in job.cells}:
        check_writable(folder)
        check_writable(folder / ".partial")
    examples, cells = len(job.data.examples), len(job.cells)
    size = f"{examples} example{'s' * (examples > 1)} x {cells} explainer{'s' * (cells > 1)}"
    progress(f"{size} on {job.model.public_name}", 0, 0)
    evidence = job.data.task.evidence
    encodings = [encode(job.model, e, evidence, job.long) for e in job.data.examples]
    for selected in job.explainers:
        parts = [part for encoding in encodings for part in inputs_read(encoding)]
        check_inputs(selected.explainer, job.model, parts)
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
    costs = _warm_up(session, job, encodings, progress)
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


def _warm_up(
    session: Session, job: Job, encodings: Sequence[Encoding], progress: Progress
) -> list[float]:
    """Call each explainer once outside the clock: first calls build copies and kernels.

    Returns the forward equivalents that each cell's explainer took for a text of usual length.
    """
    by_length = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    usual = [by_length[len(by_length) // 2]]
    batch = batch_of(job, usual, predictions(session.engine, usual), job.seed)
    costs = []
    for number, cell in enumerate(job.cells):
        progress(f"warming up {name_of(cell)}", number, len(job.cells))
        before = session.meter.total
        attribute(session, cell.selected, batch)
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

"""The straight line of a run: examples, attributions, metric values, records."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from faithbench.core.errors import telling_kept
from faithbench.core.files import check_writable
from faithbench.core.types import Encoding, Progress
from faithbench.models.encoding import encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.models.windows import parts_of
from faithbench.records.rows_writer import open_rows
from faithbench.run.attribute import attribute
from faithbench.run.chunk import Chunk, batch_of, compute_chunk
from faithbench.run.finish import Outcome, finish, measure
from faithbench.run.job import PROBED_EXAMPLES, Cell, Job, partial_path, sample_by_length
from faithbench.run.neighbours import Nearest


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
    chunks = _chunks(encodings, job.chunk)
    with ExitStack() as stack:
        session = stack.enter_context(Session(job.model, job.budget))
        files = [stack.enter_context(open_rows(partial_path(cell), cell.key)) for cell in cells]
        stack.enter_context(
            telling_kept(lambda: min(len(file.done) for file in files), len(encodings))
        )
        warm = False
        for number, chunk in enumerate(chunks):
            if any(e.example.id not in file.done for file in files for e in chunk.encodings):
                if not warm:
                    _warm_up(session, job, chunk.encodings[:1])
                    warm = True
                compute_chunk(session, job, chunk, cells, files)
            progress("explaining", number + 1, len(chunks))
        targets = [files[0].done[e.example.id].target for e in encodings]
        device = str(job.model.device)
        near = Nearest(job.data, job.results, targets, job.encoder, device, progress)
        measured = []
        for number, (cell, file) in enumerate(zip(cells, files, strict=True)):
            measured.append(measure(session, cell, file, encodings, near))
            progress("measuring", number + 1, len(cells))
        # Quick, and all together: what is killed before has its rows, after it its records.
        return [
            finish(cell, file, found, encodings, near.encoder_used)
            for cell, file, found in zip(cells, files, measured, strict=True)
        ]


def _chunks(encodings: Sequence[Encoding], size: int) -> list[Chunk]:
    """Cut examples of like length together: little padding. What is done never moves a cut."""
    sampled = frozenset(e.example.id for e in sample_by_length(encodings, PROBED_EXAMPLES))
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    return [
        Chunk(tuple(order[start : start + size]), sampled) for start in range(0, len(order), size)
    ]


def _warm_up(session: Session, job: Job, encodings: Sequence[Encoding]) -> None:
    """Call each explainer once outside the clock: first calls build copies and kernels."""
    batch = batch_of(job, encodings, predictions(session.engine, encodings), job.seed)
    for chosen in job.explainers:
        attribute(session, chosen, batch)
    session.clear()

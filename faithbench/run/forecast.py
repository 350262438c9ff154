"""What a run will take, told before it is computed: rows, passes, time and memory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from faithbench.core.types import Encoding, Progress
from faithbench.data.windows import parts_of
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.backends import Backend
from faithbench.run.chunk import (
    Chunk,
    batches_within,
    compute_chunk,
    cut_chunks,
)
from faithbench.run.estimate import expected, in_words, work_alone
from faithbench.run.job import Job
from faithbench.run.loop import check_explainers, serve, torch_threads, warm_up
from faithbench.run.measures.speed import memory_in_use, with_peak

CALIBRATION = 2.0
"""Seconds that are spent on computing a few examples."""


@dataclass(frozen=True)
class Forecast:
    """What a run will take, by what a few of its examples took.

    `rows` are distinct erased inputs, `passes` forward equivalents with each explainer charged in
    full; `seconds` are those of `workers` processes, `peak_bytes` those of all together.
    """

    examples: int
    explainers: int
    rows: float
    passes: float
    seconds: float
    workers: int
    peak_bytes: float | None

    def __str__(self) -> str:
        memory = "unknown" if self.peak_bytes is None else f"{self.peak_bytes / 2**30:.1f} GB"
        processes = f"{self.workers} process{'es' * (self.workers > 1)}"
        return (
            f"{self.examples} examples x {self.explainers} explainers: "
            f"{self.rows:,.0f} erased rows, {self.passes:,.0f} forward equivalents, "
            f"{in_words(self.seconds)} with {processes}, peak memory {memory}"
        )


def forecast(job: Job, backend: Backend, progress: Progress) -> Forecast:
    """Compute examples of usual length for two seconds, and tell what all will take.

    Nothing is written. Rows that an earlier run has left are not taken off, and explainers that
    cannot serve the model are left out.
    """
    told, _, _ = serve(job, lambda serving: _forecast(serving, backend, progress))
    return told


def _forecast(job: Job, backend: Backend, progress: Progress) -> Forecast:
    evidence = job.data.task.evidence
    encodings = [encode(job.model, e, evidence, job.long) for e in job.data.examples]
    check_explainers(job, encodings)
    with torch_threads(backend.threads), Session(job.model, job.budget) as session:
        costs = warm_up(session, job, encodings, progress).costs
        chunks = cut_chunks(job, encodings, costs, {})
        progress("calibrating", 0, 0)
        before = memory_in_use(job.model.device)
        trial = partial(_calibrate, session, job, costs, encodings)
        speed, grown = with_peak(trial, job.model.device)
    alone = work_alone(job, encodings, costs)
    seconds, workers = expected(backend, chunks, alone, speed.rate)
    peak = None
    if before is not None and grown is not None:
        peak = before + workers * grown * max(1.0, _growth(job, chunks, speed.examples))
    share = len(encodings) / len(speed.examples)
    return Forecast(
        examples=len(encodings),
        explainers=len(job.cells),
        rows=speed.rows * share,
        passes=speed.passes * share,
        seconds=seconds,
        workers=workers,
        peak_bytes=peak,
    )


@dataclass(frozen=True)
class _Speed:
    """Examples that were computed, their rows and passes, and multiply-adds per second."""

    examples: tuple[Encoding, ...]
    rows: int
    passes: float
    rate: float


def _calibrate(
    session: Session, job: Job, costs: Sequence[float], encodings: Sequence[Encoding]
) -> _Speed:
    """Compute examples one by one, as many as fit in the time, at least one."""
    start, work, done = time.perf_counter(), 0.0, list[Encoding]()
    rows, passes = session.engine.distinct, session.meter.total
    for chunk in _candidates(job, costs, encodings):
        spent = time.perf_counter() - start
        if done and spent * (1 + chunk.work / work) > CALIBRATION:
            break
        compute_chunk(session, job, chunk, lambda *_: None)
        work += chunk.work
        done += chunk.encodings
    return _Speed(
        examples=tuple(done),
        rows=session.engine.distinct - rows,
        passes=session.meter.since(passes).forward_equivalents,
        rate=work / (time.perf_counter() - start),
    )


def _candidates(job: Job, costs: Sequence[float], encodings: Sequence[Encoding]) -> Iterator[Chunk]:
    """Yield examples as chunks of one: the median length first, then shorter and longer ones."""
    ordered = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    middle = len(ordered) // 2
    nearest = sorted(range(len(ordered)), key=lambda index: (abs(index - middle), index))
    for index in nearest:
        yield from cut_chunks(job, [ordered[index]], costs, {})


def _growth(job: Job, chunks: Sequence[Chunk], sample: Sequence[Encoding]) -> float:
    """Return how much more memory the largest batch takes than the largest example computed."""
    largest = max(
        _activations(job.model, chunk.encodings[batch])
        for chunk in chunks
        for batch in batches_within(chunk.encodings, job.budget)
    )
    return largest / max(_activations(job.model, [encoding]) for encoding in sample)


def _activations(model: Model, encodings: Sequence[Encoding]) -> float:
    """Return what a batch keeps for its backward pass, up to a constant factor.

    A block keeps 34 values per token and unit of width, and 5 per head and pair of tokens
    (Korthikanti et al., 2022, Eq. 1).
    """
    config = model.network.config
    width = int(getattr(config, "hidden_size", 1))
    heads = int(getattr(config, "num_attention_heads", 0))
    parts = [part for encoding in encodings for part in parts_of(encoding)]
    longest = max(len(part.ids) for part in parts)
    return float(len(parts) * longest * (34 * width + 5 * heads * longest))

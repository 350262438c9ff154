"""One chunk of examples: explained by all cells side by side, scored together, appended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from faithbench.core.types import Attribution, Batch, Encoding
from faithbench.metrics.registry import case_metrics
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.models.predictions import Prediction, predictions
from faithbench.models.session import Session
from faithbench.models.windows import fold, parts_of
from faithbench.records.rows import ResultRow, add_values, make_row
from faithbench.records.rows_writer import RowsFile
from faithbench.run.attribute import attribute, seed_of
from faithbench.run.job import Cell, Job
from faithbench.run.measures.aopc_bounds import BoundsFile
from faithbench.run.measures.rationale_erasure import right_without_rationale, sensitivity
from faithbench.run.score import Bounds, Scored, score


@dataclass(frozen=True)
class Chunk:
    """Examples that are computed together, and the ids that dear metrics look at."""

    encodings: tuple[Encoding, ...]
    sampled: frozenset[str]


def compute_chunk(
    session: Session, job: Job, chunk: Chunk, cells: Sequence[Cell], files: Sequence[RowsFile]
) -> None:
    """Explain and score one chunk for all cells together, and append what is missing.

    The whole chunk is computed even if some cells have it: batches are then the same as in
    an uninterrupted run, and so is every bit of the result.
    """
    engine, encodings = session.engine, chunk.encodings
    said = predictions(engine, encodings)
    pairs = [(cell, seed) for cell in cells for seed in cell.seeds]
    found = _explain(session, job, encodings, said, pairs)
    scored = score(
        engine,
        [attribution for attributions in found for attribution in attributions],
        [p.log_probability for p in said] * len(pairs),
        case_metrics(job.metrics),
        job.operator,
        _bounds(job, engine, encodings, said) * len(pairs),
    )
    without = right_without_rationale(job, engine, encodings)
    engine.forget()
    size, start = len(encodings), 0
    for cell, file in zip(cells, files, strict=True):
        end = start + len(cell.seeds)
        own = scored[start * size : end * size]
        rows = _rows(job, said, found[start:end], own, without)
        extra = sensitivity(job, cell, encodings, said, chunk.sampled)
        rows = [add_values(row, values) for row, values in zip(rows, extra, strict=True)]
        seconds = [attribution.seconds for attribution in found[start]]
        file.append([(r, s) for r, s in zip(rows, seconds, strict=True) if r.id not in file.done])
        start = end


def _explain(
    session: Session,
    job: Job,
    encodings: Sequence[Encoding],
    said: Sequence[Prediction],
    pairs: Sequence[tuple[Cell, int]],
) -> list[list[Attribution]]:
    """Explain examples by each cell and seed, batch after batch, so that cells share passes.

    What a pass keeps grows with the batch: a device without memory for one gets it in halves.
    """
    found: list[list[Attribution]] = [[] for _ in pairs]
    waiting = batches_within(encodings, job.budget)
    while waiting:
        part = waiting.pop(0)
        own = encodings[part]
        batches = {
            seed: batch_of(job, own, said[part], seed) for seed in sorted({s for _, s in pairs})
        }
        try:
            each = [fold(own, attribute(session, c.selected, batches[seed])) for c, seed in pairs]
        except torch.OutOfMemoryError:
            if len(own) == 1:
                raise
            middle = part.start + len(own) // 2
            waiting = [slice(part.start, middle), slice(middle, part.stop), *waiting]
            continue
        finally:
            session.drop_passes()
        for known, new in zip(found, each, strict=True):
            known.extend(new)
    return found


def batches_within(encodings: Sequence[Encoding], budget: int) -> list[slice]:
    """Cut examples into batches of `budget` padded tokens at most, or of one example."""
    cuts, rows, longest = [0], 0, 0
    for place, encoding in enumerate(encodings):
        parts = parts_of(encoding)
        longest = max(longest, *(len(part.ids) for part in parts))
        if place > cuts[-1] and (rows + len(parts)) * longest > budget:
            cuts.append(place)
            rows, longest = 0, max(len(part.ids) for part in parts)
        rows += len(parts)
    return [slice(start, end) for start, end in pairwise([*cuts, len(encodings)])]


def batch_of(
    job: Job, encodings: Sequence[Encoding], said: Sequence[Prediction], seed: int
) -> Batch:
    """Put what the model reads of some examples into one batch, a row per window."""
    parts, targets, seeds = [], [], []
    for encoding, prediction in zip(encodings, said, strict=True):
        for number, part in enumerate(parts_of(encoding)):
            parts.append(part)
            targets.append(prediction.target)
            name = encoding.example.id
            seeds.append(seed_of(seed, f"{name}, window {number}" if number else name))
    return collate(job.model, parts, targets, seeds)


def _bounds(
    job: Job, engine: Engine, encodings: Sequence[Encoding], said: Sequence[Prediction]
) -> list[Bounds | None]:
    """Find the bounds of each input, if a metric asks for them; they serve all explainers."""
    if not any(metric.needs_bounds for metric in case_metrics(job.metrics)):
        return [None] * len(encodings)
    known = BoundsFile.open(job.results, job.model)
    return [known.find(engine, e, p, job.operator) for e, p in zip(encodings, said, strict=True)]


def _rows(
    job: Job,
    said: Sequence[Prediction],
    found: Sequence[Sequence[Attribution]],
    scored: Sequence[Scored],
    without: Sequence[bool | None],
) -> list[ResultRow]:
    """Make a row of each example: its attributions and values under every seed."""
    size = len(said)
    rows = []
    for place, prediction in enumerate(said):
        first = found[0][place]
        results = [scored[seed * size + place] for seed in range(len(found))]
        encoding = first.encoding
        rows.append(
            make_row(
                id=encoding.example.id,
                target=first.target,
                label=encoding.example.label,
                right=prediction.right,
                probability=math.exp(prediction.log_probability),
                tokens=job.model.tokenizer.convert_ids_to_tokens(
                    encoding.ids[encoding.erasable].tolist()
                ),
                scores=[attributions[place].scores for attributions in found],
                values=[result.values for result in results],
                rows_asked=sum(result.rows_asked for result in results),
                distinct_rows=sum(result.distinct_rows for result in results),
                forwards=first.forwards,
                backwards=first.backwards,
                gap=first.gap,
                right_without_rationale=without[place],
                curves=[result.curve for result in results],
            )
        )
    return rows

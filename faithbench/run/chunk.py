"""One chunk of examples: explained by all cells together, scored together, made into rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import torch

from faithbench.core.text import readable
from faithbench.core.types import Attribution, Batch, Encoding
from faithbench.data.kinds.kind import Prediction
from faithbench.data.windows import fold, parts_of
from faithbench.metrics.influence import Influence
from faithbench.metrics.registry import case_metrics, influence_metrics
from faithbench.models.encoding import collate
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.rows import ResultRow, row_of
from faithbench.run.attribute import attribute, seed_of
from faithbench.run.job import Cell, Job, probed_ids
from faithbench.run.measures.aopc_bounds import aopc_bounds, bounds_key
from faithbench.run.measures.influence import measure_influence
from faithbench.run.measures.rationale_erasure import right_without_rationale, sensitivity
from faithbench.run.score import Bounds, Scored, score

CHUNK_WORK = 6e11
"""Approximate multiply-adds per chunk: ten seconds of one core."""
LEAST_CHUNK_WORK = 6e10
"""Approximate multiply-adds below which a chunk is not cut further: one second of one core."""
FEWEST_CHUNKS = 16
"""Number of chunks that a job of some length is cut into at least, so that workers end together."""
ERASED_ROWS = 30
"""Approximate number of erased inputs that the metrics need per attribution."""
NAME_WIDTH, ID_WIDTH = 20, 14
"""Columns of an explainer's name and of an example's id in a line of progress, at most."""
PERTURBED = 11
"""Explanations per example that max_sensitivity takes, with the one of the input as it is.

That one is the run's own; but this number cuts chunks, and other chunks have other last bits."""


Tell = Callable[[str, int], None]
"""Called before each step of a chunk: the step, and how many of its examples are done with it."""


@dataclass(frozen=True)
class Chunk:
    """Examples that are computed together, the ids that expensive metrics are limited to, the
    AOPC bounds that are known already, and the approximate multiply-adds and rows of all.
    """

    encodings: tuple[Encoding, ...]
    probed: frozenset[str]
    bounds: Mapping[str, Bounds]
    work: float
    rows: float = 0.0


@dataclass(frozen=True)
class ChunkRows:
    """The results of a chunk: each cell's rows with their seconds, and newly computed bounds."""

    rows: tuple[tuple[tuple[ResultRow, float], ...], ...]
    bounds: Mapping[str, Bounds]


def cut_chunks(
    job: Job,
    encodings: Sequence[Encoding],
    costs: Sequence[float],
    bounds: Mapping[str, Bounds],
) -> list[Chunk]:
    """Cut examples into chunks of about ten seconds of work, at most `job.chunk` examples.

    A job of less than FEWEST_CHUNKS such chunks is cut into smaller ones, down to a second. A
    killed run loses at most the chunks it was computing. The rule looks at nothing but the job: the
    size of the network, the lengths of the texts, and `costs`, the forward equivalents that each
    cell's explainer takes for an example. It never looks at the clock, at the number of workers
    or at what is done, so that a continued run has the same batches as an uninterrupted one, and
    the same bits. Examples of similar length share chunks, which keeps padding small. Chunks of
    long texts come first: workers then end together, and what does not fit in memory shows at once.
    """
    probed = probed_ids(job, encodings)
    weights = weights_per_token(job.model)
    seeds = [len(cell.seeds) for cell in job.cells]
    usual = sum(n * (cost + ERASED_ROWS) for n, cost in zip(seeds, costs, strict=True))
    more = sum(costs) * PERTURBED
    # They count where chunks are cut even if no metric asks for them, but are not promised.
    unasked = 0 if case_metrics(job.metrics) else sum(seeds) * ERASED_ROWS
    cuts: list[list[Encoding]] = []
    works: list[float] = []
    rows: list[float] = []
    room = 0.0
    ordered = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    taken = [usual + (more if e.example.id in probed else 0) for e in ordered]
    each = [n * len(e.ids) * weights for n, e in zip(taken, ordered, strict=True)]
    most = min(CHUNK_WORK, max(LEAST_CHUNK_WORK, sum(each) / FEWEST_CHUNKS))
    for encoding, work, n in zip(ordered, each, taken, strict=True):
        if not cuts or work > room or len(cuts[-1]) == job.chunk:
            cuts.append([])
            works.append(0.0)
            rows.append(0.0)
            room = most
        cuts[-1].append(encoding)
        works[-1] += work
        rows[-1] += n - unasked
        room -= work
    chunks = [
        Chunk(tuple(cut), probed, bounds, work, n)
        for cut, work, n in zip(cuts, works, rows, strict=True)
    ]
    return chunks[::-1]


def weights_per_token(model: Model) -> int:
    """Return the multiply-adds of a token: one per weight, as embeddings are only looked up."""
    network = model.network
    table = sum(p.numel() for p in network.get_input_embeddings().parameters())
    return sum(parameter.numel() for parameter in network.base_model.parameters()) - table


def compute_chunk(session: Session, job: Job, chunk: Chunk, tell: Tell) -> ChunkRows:
    """Explain and score one chunk for all cells; a pure function, but that it tells its steps.

    The whole chunk is computed even if some cells have it: batches are then the same as in
    an uninterrupted run, and so is every bit of the result.
    """
    engine, encodings = session.engine, chunk.encodings
    predicted = predictions(engine, encodings)
    influences = _influences(session, job, encodings, predicted, tell)
    explained = _explain(session, job, encodings, predicted, tell)
    keys, bounds = _bounds(session, job, chunk, predicted, tell)
    metrics = case_metrics(job.metrics)
    if metrics:
        tell("erasing tokens", 0)
    scored = score(
        engine,
        [attribution for group in explained for attribution in group.attributions],
        [p.log_probability for p in predicted] * len(explained),
        metrics,
        job.operator,
        bounds * len(explained),
    )
    without = right_without_rationale(job, engine, encodings)
    engine.forget()
    every = iter(scored)
    groups = [
        _Scored(group, _with_influence(job, group, influences, list(islice(every, len(encodings)))))
        for group in explained
    ]
    once_of_cells = sensitivity(
        job,
        [group.attributions for group in explained if group.seed == job.seed],
        encodings,
        predicted,
        chunk.probed,
        lambda cell, texts: tell(
            f"perturbing {name_of(cell)} on {ids_of(encodings, texts)}", texts[0]
        ),
    )
    rows = []
    for cell, once in zip(job.cells, once_of_cells, strict=True):
        of_cell = [group for group in groups if group.explained.cell is cell]
        rows.append(tuple(_rows(job, predicted, of_cell, without, once)))
    # Longest first, as chunks are: so merged shards know in which order one run keeps bounds.
    longest_first = reversed(list(zip(keys, bounds, strict=True)))
    found = {k: pair for k, pair in longest_first if pair is not None and k not in chunk.bounds}
    return ChunkRows(tuple(rows), found)


@dataclass(frozen=True)
class _Explained:
    """The attributions of a chunk's examples by one cell under one seed."""

    cell: Cell
    seed: int
    attributions: list[Attribution]


@dataclass(frozen=True)
class _Scored:
    """The same, with the metric values of each attribution."""

    explained: _Explained
    scored: list[Scored]


def name_of(cell: Cell) -> str:
    """Return the name of a cell's explainer, cut so that a line of progress fits 80 columns."""
    return readable(cell.selected.label, NAME_WIDTH)


def ids_of(encodings: Sequence[Encoding], indices: Sequence[int]) -> str:
    """Return the first of these examples, and how many more there are, for a line of progress."""
    more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
    name = readable(encodings[indices[0]].example.id)
    if len(name) > ID_WIDTH:  # the ends of ids differ, the beginnings are often the task's name
        name = f"...{name[3 - ID_WIDTH :]}"
    return f"{name}{more}"


def _explain(
    session: Session,
    job: Job,
    encodings: Sequence[Encoding],
    predicted: Sequence[Prediction],
    tell: Tell,
) -> list[_Explained]:
    """Explain examples by each cell and seed, batch after batch, so that cells share passes.

    A batch that does not fit in the device's memory is halved.
    """
    groups = [_Explained(cell, seed, []) for cell in job.cells for seed in cell.seeds]
    waiting = batches_within(encodings, job.budget)
    while waiting:
        part = waiting.pop(0)
        texts = encodings[part]
        batches = {
            seed: batch_of(job, texts, predicted[part], seed)
            for seed in sorted({group.seed for group in groups})
        }
        try:
            attributions = []
            for group in groups:
                shown = ids_of(encodings, range(part.start, part.start + len(texts)))
                tell(f"explaining {name_of(group.cell)} on {shown}", part.start)
                by_window = attribute(session, group.cell.selected, batches[group.seed])
                attributions.append(fold(texts, by_window))
        except torch.OutOfMemoryError:
            if len(texts) == 1:
                raise
            middle = part.start + len(texts) // 2
            waiting = [slice(part.start, middle), slice(middle, part.stop), *waiting]
            continue
        finally:
            session.drop_passes()
        for group, of_batch in zip(groups, attributions, strict=True):
            group.attributions.extend(of_batch)
    return groups


def batches_within(encodings: Sequence[Encoding], budget: int) -> list[slice]:
    """Cut examples into batches of `budget` padded tokens at most, or of one example."""
    cuts, rows, longest = [0], 0, 0
    for index, encoding in enumerate(encodings):
        parts = parts_of(encoding)
        longest = max(longest, *(len(part.ids) for part in parts))
        if index > cuts[-1] and (rows + len(parts)) * longest > budget:
            cuts.append(index)
            rows, longest = 0, max(len(part.ids) for part in parts)
        rows += len(parts)
    return [slice(start, end) for start, end in pairwise([*cuts, len(encodings)])]


def batch_of(
    job: Job, encodings: Sequence[Encoding], predicted: Sequence[Prediction], seed: int
) -> Batch:
    """Put the windows of some examples into one batch, a row per window."""
    parts, targets, seeds = [], [], []
    for encoding, prediction in zip(encodings, predicted, strict=True):
        for number, part in enumerate(parts_of(encoding)):
            parts.append(part)
            targets.append(prediction.target)
            name = encoding.example.id
            seeds.append(seed_of(seed, f"{name}, window {number}" if number else name))
    return collate(job.model, parts, targets, seeds, seed)


def _influences(
    session: Session,
    job: Job,
    encodings: Sequence[Encoding],
    predicted: Sequence[Prediction],
    tell: Tell,
) -> list[Influence]:
    """Return what moves the model on each text, if a metric asks for it: one for all explainers."""
    if not influence_metrics(job.metrics):
        return []
    found: list[Influence] = []
    for part in batches_within(encodings, job.budget):
        tell("measuring influence", part.start)
        found += measure_influence(session, encodings[part], predicted[part])
    return found


def _with_influence(
    job: Job, group: _Explained, influences: Sequence[Influence], scored: Sequence[Scored]
) -> list[Scored]:
    """Add the metrics that compare scores with influence to the values of an explainer's texts."""
    if not influences:
        return list(scored)
    triples = zip(scored, group.attributions, influences, strict=True)
    return [
        replace(
            one,
            values=one.values
            | {
                metric.name: metric.value(
                    attribution.scores, influence, attribution.encoding.example.id
                )
                for metric in influence_metrics(job.metrics)
            },
        )
        for one, attribution, influence in triples
    ]


def _bounds(
    session: Session, job: Job, chunk: Chunk, predicted: Sequence[Prediction], tell: Tell
) -> tuple[list[str], list[Bounds | None]]:
    """Return the key and the AOPC bounds of each input; None if no metric asks for bounds.

    They depend on model and input alone, so they serve all explainers, and later runs.
    """
    examples = list(zip(chunk.encodings, predicted, strict=True))
    keys = [bounds_key(job.model, *example, job.operator) for example in examples]
    if not any(metric.needs_bounds for metric in case_metrics(job.metrics)):
        return keys, [None] * len(keys)
    bounds: list[Bounds | None] = []
    for number, (key, example) in enumerate(zip(keys, examples, strict=True)):
        known = chunk.bounds.get(key)
        if known is None:
            tell(f"searching bounds of {ids_of(chunk.encodings, [number])}", number)
            with session.engine.apart():
                known = aopc_bounds(session.engine, *example, job.operator)
        bounds.append(known)
    return keys, bounds


def _rows(
    job: Job,
    predicted: Sequence[Prediction],
    groups: Sequence[_Scored],
    without: Sequence[bool | None],
    once: Sequence[Mapping[str, float | None]],
) -> Iterator[tuple[ResultRow, float]]:
    """Make the row of each example: one cell's attributions and values under every seed."""
    for index, prediction in enumerate(predicted):
        attributions = [group.explained.attributions[index] for group in groups]
        scored = [group.scored[index] for group in groups]
        encoding = attributions[0].encoding
        by_seed = {name: [result.values[name] for result in scored] for name in scored[0].values}
        row = row_of(
            attributions,
            tokens=job.model.tokenizer.convert_ids_to_tokens(
                encoding.ids[encoding.erasable].tolist()
            ),
            right=prediction.right,
            probability=math.exp(prediction.log_probability),
            values=by_seed | {name: [value] for name, value in once[index].items()},
            rows_asked=sum(result.rows_asked for result in scored),
            distinct_rows=sum(result.distinct_rows for result in scored),
            right_without_rationale=without[index],
            curves=[result.curve for result in scored],
            answer=job.model.kind.answer(encoding, prediction.target),
        )
        yield row, attributions[0].seconds

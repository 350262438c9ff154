"""What of a submission's record is proved by measuring again, with the model at hand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from faithbench.core.rounding import significant
from faithbench.core.types import Attribution, Encoding, Floats
from faithbench.metrics.registry import case_metrics, find_metrics, text_metrics
from faithbench.models.predictions import Prediction, predictions
from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record
from faithbench.run.finish import explained_texts, spans_of, text_values
from faithbench.run.measures.rationale_erasure import labels_without_rationale
from faithbench.run.neighbours import Nearest
from faithbench.run.score import Scored, score
from faithbench.submissions.entry import Entry
from faithbench.submissions.faults import Fault, close, differing, told
from faithbench.submissions.measure import Setup
from faithbench.submissions.score_files import aligned_scores

EXACT = 2e-9
"""Rows keep 9 decimals: what follows from them alone may differ by no more."""
NEAR = 1e-4
"""Probabilities in float32 differ between machines."""


def prove_measured(
    folder: Path,
    file: str,
    entry: Entry,
    bench: Setup,
    record: Record,
    rows: Sequence[ResultRow],
    sample: int,
    kept: Path,
) -> Iterator[Fault]:
    """Measure again: tokens, predictions, stability and plausibility of all, the rest of some.

    `kept` is a folder for neighbours that were found before.
    """
    model, encodings = bench.model, bench.encodings
    yield from differing(file, "model", record.model, {
        "name": model.public_name, "revision": model.revision,
        "weights_sha256": model.weights_sha256,
        "truncated": sum(e.truncated > 0 for e in encodings),
    })  # fmt: skip
    token = model.erasure_token("mask")[0]
    yield from differing(file, "protocol", record.protocol, {"erasure_token": token})
    spans = spans_of(bench.data, encodings)
    yield from differing(file, "task", record.task, {"spans": spans})
    faults = [*_prove_tokens(folder, file, entry, bench, rows)]
    yield from faults
    if faults:  # nothing can be measured on other tokens
        return
    said = predictions(bench.session.engine, encodings)
    yield from _prove_predictions(file, rows, said)
    yield from _prove_tables(file, bench, record, rows, said, kept)
    chosen = random.SystemRandom().sample(range(len(rows)), min(sample, len(rows)))
    for place in sorted(chosen):
        yield from _prove_case(file, bench, record, rows[place], encodings[place], said[place])


def _prove_tokens(
    folder: Path, file: str, entry: Entry, bench: Setup, rows: Sequence[ResultRow]
) -> Iterator[Fault]:
    """Prove that rows have the model's tokens and, of attributions, the file's scores."""
    given = None
    if entry.kind == "attributions":
        given = aligned_scores(folder, bench.data.task, entry.unit or "tokens", bench.encodings)
    for row, encoding in zip(rows, bench.encodings, strict=True):
        ids = encoding.ids[encoding.erasable].tolist()
        wanted = {"tokens": tuple(bench.model.tokenizer.convert_ids_to_tokens(ids))}
        yield from differing(file, f"rows[{row.id}]", row, wanted)
        if given is not None:
            scores = tuple(significant(s, 7) for s in given[row.id])
            yield from differing(file, f"rows[{row.id}]", row, {"scores": scores})


def _prove_predictions(
    file: str, rows: Sequence[ResultRow], said: Sequence[Prediction]
) -> Iterator[Fault]:
    for row, one in zip(rows, said, strict=True):
        wanted = {"target": one.target, "right": one.right}
        yield from differing(file, f"rows[{row.id}]", row, wanted)
        if not close(row.probability, math.exp(one.log_probability), NEAR):
            seen = told(row.probability, math.exp(one.log_probability))
            yield Fault(file, f"rows[{row.id}].probability", seen)


def _prove_tables(
    file: str,
    bench: Setup,
    record: Record,
    rows: Sequence[ResultRow],
    said: Sequence[Prediction],
    kept: Path,
) -> Iterator[Fault]:
    """Compute stability and plausibility of all examples from the scores in the rows."""
    targets = [one.target for one in said]
    near = Nearest(bench.data, kept, targets, None, "cpu", lambda *_: None)
    table = explained_texts(bench.encodings, rows, near)
    metrics = [m for m in text_metrics(find_metrics("all")) if m.name in record.metrics]
    found = text_values(metrics, table)
    share = None if table.share is None else round(table.share, 9)
    yield from differing(file, "task", record.task, {"rationale_share": share})
    yield from differing(file, "protocol", record.protocol, {"encoder": near.encoder_used})
    for row, values in zip(rows, found, strict=True):
        for name, wanted in values.items():
            yield from _prove_value(file, row, name, wanted, EXACT)


def _prove_case(
    file: str, bench: Setup, record: Record, row: ResultRow, encoding: Encoding, said: Prediction
) -> Iterator[Fault]:
    """Ask the model again for what faithfulness is made of, under every seed."""
    metrics = [m for m in case_metrics(find_metrics("all")) if m.name in record.metrics]
    found: list[Scored] = []
    engine = bench.session.engine
    for scores in (row.scores, *row.more_scores):
        told_again = _attribution(encoding, said, np.array(scores, dtype=np.float64))
        found += score(engine, [told_again], [said.log_probability], metrics, "mask", [None])
    for metric in metrics:
        wanted = [one.values[metric.name] for one in found]
        yield from _prove_value(file, row, metric.name, wanted, metric.tolerance)
    for place, curve in enumerate(zip(*(one.curve for one in found), strict=True)):
        if not close(row.curve[place], sum(curve) / len(curve), NEAR):
            seen = told(row.curve[place], sum(curve) / len(curve))
            yield Fault(file, f"rows[{row.id}].curve[{place}]", seen)
    asked = sum(one.rows_asked for one in found)
    distinct = sum(one.distinct_rows for one in found)
    counts = {"rows_asked": asked, "distinct_rows": distinct}
    yield from differing(file, f"rows[{row.id}]", row, counts)
    if bench.data.rationale != "none" and isinstance(row.target, int):
        (without,) = labels_without_rationale(engine, [encoding], "mask")
        erased = {"right_without_rationale": without}
        yield from differing(file, f"rows[{row.id}]", row, erased)
    engine.forget()


def _prove_value(
    file: str, row: ResultRow, name: str, wanted: Sequence[float | None], tolerance: float
) -> Iterator[Fault]:
    """Compare a metric's values under every seed; a single one stands in `values`."""
    own = row.by_seed.get(name, (row.values[name],))
    for found, expected in zip(own, wanted, strict=True):
        if not close(found, expected, tolerance):
            yield Fault(file, f"rows[{row.id}].values.{name}", told(found, expected))


def _attribution(encoding: Encoding, said: Prediction, scores: Floats) -> Attribution:
    every = np.zeros(len(encoding.ids))
    every[encoding.erasable] = scores
    return Attribution(encoding, said.target, every, 0.0, None, None)

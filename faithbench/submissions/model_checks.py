"""Checks of a submission's record that measure again, with the model at hand."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from faithbench.core.rounding import significant
from faithbench.core.types import Attribution, Encoding, Floats
from faithbench.data.kinds.kind import Prediction
from faithbench.metrics.registry import case_metrics, find_metrics, text_metrics
from faithbench.models.predictions import predictions
from faithbench.records.rows import ResultRow
from faithbench.run.finish import explained_texts, spans_of, text_values
from faithbench.run.measures.rationale_erasure import labels_without_rationale
from faithbench.run.neighbours import Nearest
from faithbench.run.score import Scored, score
from faithbench.submissions.faults import Fault, close, mismatch, unequal_fields
from faithbench.submissions.measure import Setup
from faithbench.submissions.record_checks import SubmittedRecord
from faithbench.submissions.score_files import aligned_scores

EXACT = 2e-9
"""Tolerance for what follows from rows alone: they keep 9 decimals."""
NEAR = 1e-4
"""Tolerance for probabilities: in float32 they differ between machines."""


def check_measured(
    submitted: SubmittedRecord, setup: Setup, sample: int, cache: Path
) -> Iterator[Fault]:
    """Measure a record again, and compare.

    Tokens, predictions, stability and plausibility are checked on all examples, the erasure
    metrics on a random sample of them. `cache` is a folder for neighbours of examples.
    """
    file, record, rows = submitted.file, submitted.record, submitted.rows
    model, encodings = setup.model, setup.encodings
    facts = {
        "name": model.public_name,
        "revision": model.revision,
        "weights_sha256": model.weights_sha256,
        "truncated": sum(encoding.truncated > 0 for encoding in encodings),
    }
    yield from unequal_fields(file, "model", record.model, facts)
    token = model.erasure_token("mask")[0]
    yield from unequal_fields(file, "protocol", record.protocol, {"erasure_token": token})
    spans = spans_of(setup.data, encodings)
    yield from unequal_fields(file, "task", record.task, {"spans": spans})
    faults = [*_check_tokens(submitted, setup)]
    yield from faults
    if faults:  # nothing can be measured on other tokens
        return
    predicted = predictions(setup.session.engine, encodings)
    yield from _check_predictions(file, rows, predicted)
    yield from _check_tables(submitted, setup, predicted, cache)
    # Drawn anew each time, so that a forger cannot know which examples are measured.
    sampled = random.SystemRandom().sample(range(len(rows)), min(sample, len(rows)))
    for index in sorted(sampled):
        yield from _check_case(submitted, setup, rows[index], encodings[index], predicted[index])


def _check_tokens(submitted: SubmittedRecord, setup: Setup) -> Iterator[Fault]:
    """Check that rows have the model's tokens and, of attributions, the scores in the file."""
    entry, scores = submitted.entry, None
    if entry.kind == "attributions":
        unit = entry.unit or "tokens"
        scores = aligned_scores(submitted.folder, setup.data.task, unit, setup.encodings)
    for row, encoding in zip(submitted.rows, setup.encodings, strict=True):
        ids = encoding.ids[encoding.erasable].tolist()
        tokens = tuple(setup.model.tokenizer.convert_ids_to_tokens(ids))
        expected: dict[str, object] = {"tokens": tokens}
        if scores is not None:
            # As a run rounds them before it writes rows.
            expected["scores"] = tuple(significant(value, 7) for value in scores[row.id])
        yield from unequal_fields(submitted.file, f"rows[{row.id}]", row, expected)


def _check_predictions(
    file: str, rows: Sequence[ResultRow], predicted: Sequence[Prediction]
) -> Iterator[Fault]:
    for row, prediction in zip(rows, predicted, strict=True):
        facts = {"target": prediction.target, "right": prediction.right}
        yield from unequal_fields(file, f"rows[{row.id}]", row, facts)
        probability = math.exp(prediction.log_probability)
        if not close(row.probability, probability, NEAR):
            problem = mismatch(row.probability, probability)
            yield Fault(file, f"rows[{row.id}].probability", problem)


def _check_tables(
    submitted: SubmittedRecord, setup: Setup, predicted: Sequence[Prediction], cache: Path
) -> Iterator[Fault]:
    """Compute stability and plausibility of all examples from the scores in the rows."""
    file, record, rows = submitted.file, submitted.record, submitted.rows
    targets = [prediction.target for prediction in predicted]
    neighbours = Nearest(setup.data, cache, targets, None, "cpu", lambda *_: None)
    table = explained_texts(setup.encodings, rows, neighbours)
    metrics = [m for m in text_metrics(find_metrics("all")) if m.name in record.metrics]
    # Before the encoder is compared: which one was used is known once a metric has asked for it.
    values_of_rows = text_values(metrics, table)
    share = None if table.share is None else round(table.share, 9)
    yield from unequal_fields(file, "task", record.task, {"rationale_share": share})
    encoder = {"encoder": neighbours.encoder_used}
    yield from unequal_fields(file, "protocol", record.protocol, encoder)
    for row, values in zip(rows, values_of_rows, strict=True):
        for name, expected in values.items():
            yield from _check_value(file, row, name, expected, EXACT)


def _check_case(
    submitted: SubmittedRecord,
    setup: Setup,
    row: ResultRow,
    encoding: Encoding,
    prediction: Prediction,
) -> Iterator[Fault]:
    """Compute the erasure metrics of one example, under every seed."""
    file, field = submitted.file, f"rows[{row.id}]"
    names = submitted.record.metrics
    metrics = [metric for metric in case_metrics(find_metrics("all")) if metric.name in names]
    engine = setup.session.engine
    by_seed: list[Scored] = []
    for scores in (row.scores, *row.more_scores):
        attribution = _attribution(encoding, prediction, np.array(scores, dtype=np.float64))
        by_seed += score(
            engine, [attribution], [prediction.log_probability], metrics, "mask", [None]
        )
    for metric in metrics:
        expected = [scored.values[metric.name] for scored in by_seed]
        yield from _check_value(file, row, metric.name, expected, metric.tolerance)
    for index, points in enumerate(zip(*(scored.curve for scored in by_seed), strict=True)):
        mean = sum(points) / len(points)
        if not close(row.curve[index], mean, NEAR):
            yield Fault(file, f"{field}.curve[{index}]", mismatch(row.curve[index], mean))
    counts = {
        "rows_asked": sum(scored.rows_asked for scored in by_seed),
        "distinct_rows": sum(scored.distinct_rows for scored in by_seed),
    }
    yield from unequal_fields(file, field, row, counts)
    if setup.data.rationale != "none":
        (without,) = labels_without_rationale(engine, [encoding], "mask")
        erased = {"right_without_rationale": without}
        yield from unequal_fields(file, field, row, erased)
    # Counts of the next example must not profit from rows of this one.
    engine.forget()


def _check_value(
    file: str, row: ResultRow, name: str, expected: Sequence[float | None], tolerance: float
) -> Iterator[Fault]:
    """Compare a metric's values under every seed; the value of a single seed is in `values`."""
    by_seed = row.by_seed.get(name, (row.values[name],))
    for actual, value in zip(by_seed, expected, strict=True):
        if not close(actual, value, tolerance):
            yield Fault(file, f"rows[{row.id}].values.{name}", mismatch(actual, value))


def _attribution(encoding: Encoding, prediction: Prediction, scores: Floats) -> Attribution:
    """Place the scores of a row at the tokens that may be erased."""
    every_score = np.zeros(len(encoding.ids))
    every_score[encoding.erasable] = scores
    return Attribution(
        encoding, prediction.target, every_score, seconds=0.0, forwards=None, backwards=None
    )

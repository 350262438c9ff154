"""Checks of a submission's record that measure again, with the model at hand."""

from __future__ import annotations

import hashlib
import hmac
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from faithbench.core.files import file_sha256
from faithbench.core.rounding import significant
from faithbench.core.types import Attribution, Case, Encoding, Floats, Outputs
from faithbench.data.kinds.kind import Prediction
from faithbench.metrics.kinds import CaseMetric
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
LAST_BITS = 1e-5
"""How far machines differ in a logarithm of a probability, about; it swaps ranks that are close."""
DRAWS = 16
"""How often outputs are moved by that much to see how far a value of ranks moves."""


def check_measured(
    submitted: SubmittedRecord, setup: Setup, sample: int, cache: Path, secret: str = ""
) -> Iterator[Fault]:
    """Measure a record again, and compare.

    Tokens, predictions, stability and plausibility are checked on all examples, the erasure
    metrics on a sample of them. `cache` is a folder for neighbours of examples.
    """
    file, record, rows = submitted.file, submitted.record, submitted.rows
    model, encodings = setup.model, setup.encodings
    facts = {
        "name": model.public_name,
        "revision": model.revision,
        "sha256": model.sha256,
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
    yield from _check_all_measured(submitted)
    for index in sampled_indices(submitted, sample, secret):
        yield from _check_case(submitted, setup, rows[index], encodings[index], predicted[index])


def sampled_indices(submitted: SubmittedRecord, sample: int, secret: str) -> list[int]:
    """Return which rows are measured again, drawn from the record's own digest and a secret.

    The same record gives the same rows, so that a check can be repeated; any change of the record
    gives others, and without the secret nobody can tell which before the check.
    """
    digest = file_sha256(submitted.folder / submitted.file).encode()
    seed = hmac.new(secret.encode(), digest, hashlib.sha256).hexdigest()
    count = len(submitted.rows)
    return sorted(random.Random(seed).sample(range(count), min(sample, count)))


def _check_all_measured(submitted: SubmittedRecord) -> Iterator[Fault]:
    """Refuse values of a metric that nothing here measures again."""
    known = find_metrics("all")
    again = {metric.name for metric in (*case_metrics(known), *text_metrics(known))}
    for name in sorted(set(submitted.record.metrics) - again):
        if any(row.values.get(name) is not None for row in submitted.rows):
            yield Fault(
                submitted.file, f"metrics.{name}", "has values that cannot be measured again"
            )


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
        if row.answer:  # rows of older records have none
            expected["answer"] = setup.model.kind.answer(encoding, row.target)
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
    attributions: list[Attribution] = []
    for scores in (row.scores, *row.more_scores):
        attribution = _attribution(encoding, prediction, np.array(scores, dtype=np.float64))
        by_seed += score(
            engine, [attribution], [prediction.log_probability], metrics, "mask", [None]
        )
        attributions.append(attribution)
    # The rows are those from above: the engine still has them.
    moved = [
        score(
            engine, [attribution], [prediction.log_probability],
            [replace(m, score=_rounding_of(m)) for m in metrics if m.tolerance > NEAR],
            "mask", [None],
        )[0]
        for attribution in attributions
    ]  # fmt: skip
    for metric in metrics:
        expected = [scored.values[metric.name] for scored in by_seed]
        spread = max(scored.values.get(metric.name) or 0.0 for scored in moved)
        yield from _check_value(file, row, metric.name, expected, NEAR + spread)
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


def _rounding_of(metric: CaseMetric) -> Callable[[Case, Outputs], float]:
    """Return a score that is how far the last bits of float32 can move a metric's value.

    A value of ranks jumps where two outputs are all but equal, and is exact elsewhere: so outputs
    are moved at random by as much as machines differ, under a fixed seed.
    """

    def spread(case: Case, outputs: Outputs) -> float:
        draw = np.random.default_rng(0)
        value = metric.score(case, outputs)
        moved = 0.0
        for _ in range(DRAWS if value is not None else 0):
            noise = draw.uniform(-LAST_BITS, LAST_BITS, len(outputs.kept))
            other = metric.score(
                case, replace(outputs, log_probability=outputs.log_probability + noise)
            )
            moved = max(moved, 1.0 if other is None else abs(other - (value or 0.0)))
        return min(moved, 1.0)

    return spread


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

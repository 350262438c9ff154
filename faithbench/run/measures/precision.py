"""How far half precision moves a model's probabilities, measured on a sample for the record."""

from __future__ import annotations

import numpy as np

from faithbench.data.dataset import Dataset
from faithbench.data.windows import erased_rows, rows_of
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import evaluate_inputs, predictions
from faithbench.records.schema import PrecisionFacts

HALVES = ("bf16", "fp16")
SAMPLE = 32
"""Number of examples compared, at most."""


def precision_shift(reference: Model, model: Model, data: Dataset) -> PrecisionFacts:
    """Compare a model with the same weights in float32 on the first examples of the data.

    f is the probability of what the reference predicts on the full input; besides that input,
    one with every other token of the evidence masked is compared.
    """
    examples = data.examples[:SAMPLE]
    encodings = [encode(reference, example, data.task.evidence) for example in examples]
    predicted = predictions(Engine(reference), encodings)
    token = reference.erasure_id("mask")
    rows = [tuple(rows_of(encoding)) for encoding in encodings]
    for encoding in encodings:
        keep = np.ones(len(encoding.ids), dtype=bool)
        keep[np.flatnonzero(encoding.erasable)[::2]] = False
        rows.append(erased_rows(encoding, keep, "mask", token))
    targets = [p.target for p in predicted] * 2
    exact = evaluate_inputs(Engine(reference), rows, encodings * 2, targets)
    halved = evaluate_inputs(Engine(model), rows, encodings * 2, targets)
    moved = abs(halved.probability - exact.probability)
    return PrecisionFacts(
        inputs=len(rows),
        largest_shift=round(float(moved.max()), 6),
        mean_shift=round(float(moved.mean()), 6),
        changed_predictions=int((halved.kept != exact.kept).sum()),
    )

"""Predictions for full inputs, and their probabilities for erased ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faithbench.core.types import Bools, Encoding, Outputs, Target, TokenRow
from faithbench.data.kinds.kind import Prediction
from faithbench.models.engine import Engine


def predictions(engine: Engine, encodings: Sequence[Encoding]) -> list[Prediction]:
    """Predict the full inputs: the likeliest class, or the likeliest answer."""
    return engine.model.kind.predict(engine, encodings, engine.model.labels)


def evaluate_inputs(
    engine: Engine,
    inputs: Sequence[Sequence[TokenRow]],
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
) -> Outputs:
    """Run inputs, each of one row per window, and return the target's probability for each.

    `encodings` and `targets` are those of the full inputs they were made from.
    """
    model = engine.model
    return model.kind.evaluate(engine, inputs, encodings, targets, model.labels)


def gold_tokens(encoding: Encoding) -> tuple[Bools, ...]:
    """Mark, for each accepted answer that the model can read, the tokens it covers."""
    starts, ends = np.array(encoding.spans).T
    marks = []
    for answer in encoding.example.answers:
        end = answer.start + len(answer.text)
        marked = encoding.erasable & (starts < end) & (ends > answer.start)
        if marked.any():
            marks.append(marked)
    return tuple(marks)

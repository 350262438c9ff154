"""How good the model itself is: predictions and accuracy through the one engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from faithbench.data import Dataset
from faithbench.encoding import encode
from faithbench.forward import Engine
from faithbench.models import Model
from faithbench.types import Encoding, Floats


def predict(engine: Engine, encodings: Sequence[Encoding]) -> Floats:
    """Return the log-probabilities of the full inputs, one line per example."""
    return engine.log_probabilities([(e.ids, e.types) for e in encodings])


def accuracy(
    model: Model, data: Dataset, progress: Callable[[str, int, int], None] | None = None
) -> float:
    """Return the share of examples whose predicted class is their label."""
    engine, right = Engine(model), 0
    chunk = 256
    for start in range(0, len(data.examples), chunk):
        examples = data.examples[start : start + chunk]
        answers = predict(engine, [encode(model, e, data.task.evidence) for e in examples])
        right += int((np.argmax(answers, axis=1) == [e.label for e in examples]).sum())
        engine.forget()
        if progress is not None:
            progress(f"accuracy on {data.split}", start + len(examples), len(data.examples))
    return right / len(data.examples)

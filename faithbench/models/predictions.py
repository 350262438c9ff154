"""What a model predicts, and what becomes of it: a class, or an answer in the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Bools, Encoding, Floats, Ints, Outputs, Target
from faithbench.models.answers import best_span, exact_match, span_text
from faithbench.models.engine import Engine, TokenRow
from faithbench.models.model import Model
from faithbench.models.windows import parts_of

NO_ANSWER = (0, 0)


@dataclass(frozen=True)
class Prediction:
    """What is explained of one example, ln f of its full input, and whether it is right."""

    target: Target
    log_probability: float
    right: bool


def predictions(engine: Engine, encodings: Sequence[Encoding]) -> list[Prediction]:
    """Predict the full inputs: the likeliest class, or the likeliest answer."""
    if len(engine.model.outputs) == 1:
        answers = classes(engine, [rows_of(encoding) for encoding in encodings])
        targets = [int(t) for t in np.argmax(answers, axis=1)]
        return [
            Prediction(target, float(answer[target]), target == encoding.example.label)
            for target, answer, encoding in zip(targets, answers, encodings, strict=True)
        ]
    starts, ends = _positions(engine, [(e.ids, e.types) for e in encodings])
    found = []
    for encoding, start, end in zip(encodings, starts, ends, strict=True):
        span = _span(engine.model, encoding, start, end)
        said = span_text(encoding, None if span == NO_ANSWER else span)
        accepted = [answer.text for answer in encoding.example.answers]
        log_probability = float(start[span[0]] + end[span[1]])
        found.append(Prediction(span, log_probability, bool(exact_match(said, accepted))))
    return found


def evaluate_inputs(
    engine: Engine,
    inputs: Sequence[Sequence[TokenRow]],
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
) -> Outputs:
    """Run inputs, each of one row per window, and say what is left of each one's prediction.

    `encodings` and `targets` are those of the full inputs they were made from.
    """
    if len(engine.model.outputs) == 1:
        answers = classes(engine, inputs)
        own = np.array(targets, dtype=np.int64)
        return Outputs(answers[np.arange(len(inputs)), own], answers.argmax(axis=1) == own)
    rows = [first for (first,) in inputs]
    if any(len(ids) != len(e.ids) for (ids, _), e in zip(rows, encodings, strict=True)):
        raise FaithbenchError(
            "an answer loses its place in the text when tokens are deleted; "
            "erase with --operator mask"
        )
    starts, ends = _positions(engine, rows)
    log_probability, kept = np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
    for i, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
        assert not isinstance(target, int)  # a question answerer's is a pair
        log_probability[i] = starts[i, target[0]] + ends[i, target[1]]
        kept[i] = _span(engine.model, encoding, starts[i], ends[i]) == target
    return Outputs(log_probability, kept)


def rows_of(encoding: Encoding) -> list[TokenRow]:
    """Return the rows of a full input: one, or one per window."""
    return [(part.ids, part.types) for part in parts_of(encoding)]


def classes(engine: Engine, inputs: Sequence[Sequence[TokenRow]]) -> Floats:
    """Return log-probabilities of the classes; of several windows, of their mean probability."""
    answers = engine.log_probabilities([row for rows in inputs for row in rows])
    counts = np.array([len(rows) for rows in inputs])
    if (counts == 1).all():
        return answers
    starts = np.cumsum(counts) - counts
    sums = np.logaddexp.reduceat(answers, starts, axis=0)
    found: Floats = sums - np.log(counts)[:, None]
    return found


def erasable_places(encoding: Encoding, target: Target) -> Ints:
    """Return the positions that may be erased: the evidence without the predicted answer.

    Erasing the answer itself proves nothing (docs/protocol.md).
    """
    free = encoding.erasable.copy()
    if not isinstance(target, int) and target != NO_ANSWER:
        free[target[0] : target[1] + 1] = False
    return np.flatnonzero(free).astype(np.int64)


def gold_tokens(encoding: Encoding) -> tuple[Bools, ...]:
    """Mark, for each accepted answer that the model can read, the tokens it covers."""
    starts, ends = np.array(encoding.spans).T
    found = []
    for answer in encoding.example.answers:
        end = answer.start + len(answer.text)
        marked = encoding.erasable & (starts < end) & (ends > answer.start)
        if marked.any():
            found.append(marked)
    return tuple(found)


def _positions(engine: Engine, rows: Sequence[TokenRow]) -> tuple[Floats, Floats]:
    first, last = engine.model.outputs
    return engine.log_probabilities(rows, first), engine.log_probabilities(rows, last)


def _span(model: Model, encoding: Encoding, starts: Floats, ends: Floats) -> tuple[int, int]:
    may_be_none = len(model.labels) > 1
    return best_span(encoding, starts, ends, may_be_none=may_be_none) or NO_ANSWER

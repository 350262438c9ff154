"""From attributions to metric values, with the rows of all metrics and explainers in one go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from faithbench.core.erasure import Operator
from faithbench.core.types import Attribution, Bools, Case, Outputs, TokenRow
from faithbench.data.kinds.kind import Kind
from faithbench.data.windows import erased_rows
from faithbench.metrics.kinds import CaseMetric
from faithbench.models.engine import Engine
from faithbench.models.predictions import evaluate_inputs, gold_tokens

# Rows per wave of a metric that may stop early. Small, so that few rows are computed in vain
# after the metric has what it needs; the waves of all examples of a chunk run together, so
# they still fill a pack.
WAVE = 2
NO_OUTPUTS = Outputs(np.zeros(0), np.zeros(0, dtype=bool))

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Scored:
    """The metric values of one attribution, and the rows they took.

    `curve` is what a metric keeps of its rows' probabilities: f without the top 10, 20, ..., 90%
    if `aopc` was among the metrics.
    """

    values: dict[str, float | None]
    rows_asked: int
    distinct_rows: int
    curve: tuple[float, ...] = ()


@dataclass
class _Request:
    """The rows that one metric plans for one attribution, and the outputs so far."""

    owner: int
    metric: CaseMetric
    case: Case
    plan: Bools
    answers: Outputs = field(default_factory=lambda: NO_OUTPUTS)

    @property
    def asked(self) -> int:
        return len(self.answers.kept)

    def next_rows(self) -> Bools:
        """Return the next rows to ask for: all, or a wave of a metric that may stop."""
        stop = self.metric.enough
        if stop is None:
            return self.plan[self.asked :]
        if self.asked and stop(self.answers):
            return self.plan[:0]
        return self.plan[self.asked : self.asked + WAVE]

    def take(self, answers: Outputs) -> None:
        self.answers = Outputs(
            np.concatenate([self.answers.log_probability, answers.log_probability]),
            np.concatenate([self.answers.kept, answers.kept]),
        )


def score(
    engine: Engine,
    attributions: Sequence[Attribution],
    log_probability: Sequence[float],
    metrics: Sequence[CaseMetric],
    operator: Operator,
    bounds: Sequence[Bounds | None] | None = None,
) -> list[Scored]:
    """Collect the rows of all metrics and attributions, run each distinct row once, and score.

    `log_probability` is that of each full input; `bounds` go to metrics that need them.
    Metrics that may stop early ask in waves, all examples in the same wave.
    """
    cases = [
        case_of(engine.model.kind, attribution, full, None if bounds is None else bounds[i])
        for i, (attribution, full) in enumerate(zip(attributions, log_probability, strict=True))
    ]
    requests = [
        _Request(i, metric, case, metric.rows(case, attributions[i].encoding.example.id))
        for i, case in enumerate(cases)
        for metric in metrics
    ]
    # Each turn runs one wave: the next rows of every request that is not finished. Requests
    # without early stopping give all their rows in the first.
    while waiting := [(r, rows) for r in requests if len(rows := r.next_rows())]:
        owners = [attributions[r.owner] for r, rows in waiting for _ in rows]
        keeps = [keep for _, rows in waiting for keep in rows]
        answers = _ask(engine, owners, keeps, operator)
        start = 0
        for request, rows in waiting:
            end = start + len(rows)
            request.take(Outputs(answers.log_probability[start:end], answers.kept[start:end]))
            start = end
    return [
        _scored([r for r in requests if r.owner == i], attribution.encoding.example.id)
        for i, attribution in enumerate(attributions)
    ]


def case_of(
    kind: Kind, attribution: Attribution, log_probability: float, bounds: Bounds | None = None
) -> Case:
    """Return what metrics see of an attribution."""
    encoding = attribution.encoding
    positions = kind.erasable(encoding, attribution.target)
    return Case(
        scores=attribution.every_score[positions],
        positions=positions,
        log_probability=log_probability,
        every_score=attribution.every_score,
        evidence=np.flatnonzero(encoding.erasable).astype(np.int64),
        gold=gold_tokens(encoding),
        bounds=bounds,
    )


def _ask(
    engine: Engine, owners: Sequence[Attribution], keeps: Sequence[Bools], operator: Operator
) -> Outputs:
    """Run the erased rows; a row that several metrics or explainers ask for is built once."""
    token_id = engine.model.erasure_id(operator)
    index: dict[tuple[int, object, bytes], int] = {}
    inputs: list[tuple[TokenRow, ...]] = []
    firsts: list[Attribution] = []
    indices = []
    for owner, keep in zip(owners, keeps, strict=True):
        # All cells explain the same encoding object, so its id stands for the text.
        key = (id(owner.encoding), owner.target, keep.tobytes())
        if key not in index:
            index[key] = len(inputs)
            inputs.append(erased_rows(owner.encoding, keep, operator, token_id))
            firsts.append(owner)
        indices.append(index[key])
    outputs = evaluate_inputs(
        engine, inputs, [o.encoding for o in firsts], [o.target for o in firsts]
    )
    return Outputs(outputs.log_probability[indices], outputs.kept[indices])


def _scored(requests: Sequence[_Request], example: str) -> Scored:
    asked = [keep for r in requests for keep in r.plan[: r.asked]]
    curves = [tuple(r.answers.probability.tolist()) for r in requests if r.metric.keeps_curve]
    return Scored(
        {r.metric.name: r.metric.value(r.case, r.answers, example) for r in requests},
        len(asked),
        len({keep.tobytes() for keep in asked}),
        curves[0] if curves else (),
    )

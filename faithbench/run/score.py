"""From attributions to metric values: the rows of all metrics and explainers, run together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from faithbench.core.erasure import Operator
from faithbench.core.types import Answers, Attribution, Bools, Case
from faithbench.metrics.registry import CaseMetric
from faithbench.models.engine import Engine, Row
from faithbench.models.predictions import erasable_places, gold_tokens, read_answers
from faithbench.models.windows import erased_rows

# A metric that stops early asks for so many rows at a time: few are then in vain, and with
# the other examples of a chunk they still fill a pack.
WAVE = 2
NO_ANSWERS = Answers(np.zeros(0), np.zeros(0, dtype=bool))

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Scored:
    """The metric values of one attribution, and the rows they took.

    `curve` is f without the top 10, 20, ..., 90%, if `aopc` was among the metrics.
    """

    values: dict[str, float | None]
    rows_asked: int
    distinct_rows: int
    curve: tuple[float, ...] = ()


@dataclass
class _Request:
    """The rows one metric wants of one attribution, and the answers so far."""

    owner: int
    metric: CaseMetric
    case: Case
    plan: Bools
    answers: Answers = field(default_factory=lambda: NO_ANSWERS)

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

    def take(self, answers: Answers) -> None:
        self.answers = Answers(
            np.concatenate([self.answers.log_f, answers.log_f]),
            np.concatenate([self.answers.kept, answers.kept]),
        )


def score(
    engine: Engine,
    attributions: Sequence[Attribution],
    log_f: Sequence[float],
    metrics: Sequence[CaseMetric],
    operator: Operator,
    bounds: Sequence[Bounds | None] | None = None,
) -> list[Scored]:
    """Gather the rows of all metrics and attributions, run each distinct one once, score.

    `log_f` holds ln f of each attribution's full input, `bounds` what metrics that ask for
    bounds need. Metrics that may stop early ask in waves, all examples side by side.
    """
    cases = [
        case_of(attribution, full, None if bounds is None else bounds[i])
        for i, (attribution, full) in enumerate(zip(attributions, log_f, strict=True))
    ]
    requests = [
        _Request(i, metric, case, metric.rows(case))
        for i, case in enumerate(cases)
        for metric in metrics
    ]
    while waiting := [(r, rows) for r in requests if len(rows := r.next_rows())]:
        owners = [attributions[r.owner] for r, rows in waiting for _ in rows]
        keeps = [keep for _, rows in waiting for keep in rows]
        answers = _ask(engine, owners, keeps, operator)
        start = 0
        for request, own in waiting:
            end = start + len(own)
            request.take(Answers(answers.log_f[start:end], answers.kept[start:end]))
            start = end
    return [_scored([r for r in requests if r.owner == i]) for i in range(len(cases))]


def case_of(attribution: Attribution, log_f: float, bounds: Bounds | None = None) -> Case:
    """Return what metrics see of an attribution."""
    encoding = attribution.encoding
    places = erasable_places(encoding, attribution.target)
    return Case(
        scores=attribution.every_score[places],
        places=places,
        log_f=log_f,
        every_score=attribution.every_score,
        evidence=np.flatnonzero(encoding.erasable).astype(np.int64),
        gold=gold_tokens(encoding),
        bounds=bounds,
    )


def _ask(
    engine: Engine, owners: Sequence[Attribution], keeps: Sequence[Bools], operator: Operator
) -> Answers:
    """Run the erased rows; those that several metrics or explainers ask for are made once."""
    token_id = engine.model.erasure_id(operator)
    index: dict[tuple[int, object, bytes], int] = {}
    inputs: list[tuple[Row, ...]] = []
    firsts: list[Attribution] = []
    places = []
    for owner, keep in zip(owners, keeps, strict=True):
        key = (id(owner.encoding), owner.target, keep.tobytes())
        if key not in index:
            index[key] = len(inputs)
            inputs.append(erased_rows(owner.encoding, keep, operator, token_id))
            firsts.append(owner)
        places.append(index[key])
    found = read_answers(engine, inputs, [o.encoding for o in firsts], [o.target for o in firsts])
    return Answers(found.log_f[places], found.kept[places])


def _scored(requests: Sequence[_Request]) -> Scored:
    asked = [keep for r in requests for keep in r.plan[: r.asked]]
    curves = [tuple(r.answers.f.tolist()) for r in requests if r.metric.name == "aopc"]
    return Scored(
        {r.metric.name: r.metric.value(r.case, r.answers) for r in requests},
        len(asked),
        len({keep.tobytes() for keep in asked}),
        curves[0] if curves else (),
    )

"""From a batch to attributions, and from attributions to metric values."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from faithbench.erasure import Operator, erase, rank
from faithbench.errors import FaithbenchError
from faithbench.forward import Engine, Row
from faithbench.metrics import Metric
from faithbench.models import Model
from faithbench.selection import Chosen
from faithbench.sharing import heads_of
from faithbench.types import Attribution, Batch, Case, Explainer, Floats


@dataclass(frozen=True)
class Scored:
    """The metric values of one attribution, and the rows they took."""

    values: dict[str, float | None]
    rows_asked: int
    distinct_rows: int


def seed_of(seed: int, example_id: str) -> int:
    """Derive an example's own seed, so that order, resume and subset never change a score."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{example_id}".encode()).digest()[:7])


def explain(explainer: Explainer, model: Model, batch: Batch) -> torch.Tensor:
    """Explain a batch's targets; start and end of an answer are explained apart and added."""
    first, *rest = (explainer(model, part) for part in heads_of(model, batch))
    return sum(rest, first)


def attribute(model: Model, chosen: Chosen, batch: Batch) -> list[Attribution]:
    """Run one explainer on a batch; time it, count its passes and check what it says."""
    before, start = model.meter.total, time.perf_counter()
    scores = explain(chosen.explainer, model, batch)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    elapsed = time.perf_counter() - start
    cost = model.meter.since(before)
    count = len(batch.encodings)
    if scores.shape != batch.ids.shape:
        raise FaithbenchError(
            f"explainer {chosen.name!r} gave scores of shape {tuple(scores.shape)} for tokens of "
            f"shape {tuple(batch.ids.shape)}; it must give one score per token"
        )
    table = scores.detach().cpu().double().numpy()
    gaps = _gaps(chosen, model, batch, scores)
    attributions = []
    for row, encoding in enumerate(batch.encodings):
        own = table[row, : len(encoding.ids)][encoding.erasable]
        if not np.isfinite(own).all():
            raise FaithbenchError(
                f"explainer {chosen.name!r} gave a score that is not finite for example "
                f"{encoding.example.id!r}; scores must be numbers"
            )
        attributions.append(
            Attribution(
                encoding=encoding,
                target=int(batch.targets[row]),
                scores=own,
                seconds=(elapsed + cost.shared_seconds) / count,
                forwards=_part(cost.forwards, count, row),
                backwards=_part(cost.backwards, count, row),
                gap=gaps[row],
            )
        )
    return attributions


def _part(total: int, count: int, row: int) -> int:
    """Return one of `count` whole parts, as equal as can be, that add up to the total."""
    return total // count + (row < total % count)


def _gaps(chosen: Chosen, model: Model, batch: Batch, scores: torch.Tensor) -> list[float | None]:
    """Ask an explainer that promises a sum how far it missed it, outside the clock."""
    gaps = getattr(chosen.explainer, "gaps", None)
    if gaps is None or len(model.heads) > 1:
        return [None] * len(batch.ids)
    return [float(gap) for gap in gaps(model, batch, scores)]


def score(
    engine: Engine,
    attributions: Sequence[Attribution],
    full: Sequence[Floats],
    metrics: Sequence[Metric],
    operator: Operator,
) -> list[Scored]:
    """Gather the rows of all metrics and attributions, run them together, score each.

    `full` holds the log-probabilities of each attribution's full input.
    """
    token_id = 0 if operator == "delete" else engine.model.erasure_token(operator)[1]
    cases = [
        Case(a.scores, rank(a.scores), a.target, answer)
        for a, answer in zip(attributions, full, strict=True)
    ]
    plans = [[metric.plan(case) for metric in metrics] for case in cases]
    rows: list[Row] = [
        erase(attribution.encoding, keep, operator, token_id)
        for attribution, plan in zip(attributions, plans, strict=True)
        for keeps in plan
        for keep in keeps
    ]
    answers = engine.log_probabilities(rows)
    scored, start = [], 0
    for case, plan in zip(cases, plans, strict=True):
        values: dict[str, float | None] = {}
        for metric, keeps in zip(metrics, plan, strict=True):
            values[metric.name] = metric.value(case, answers[start : start + len(keeps)])
            start += len(keeps)
        masks = {keep.tobytes() for keeps in plan for keep in keeps}
        scored.append(Scored(values, sum(len(keeps) for keeps in plan), len(masks)))
    return scored

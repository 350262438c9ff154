"""From a batch to attributions: timed, counted and checked."""

from __future__ import annotations

import hashlib
import time

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Attribution, Batch, Target
from faithbench.explainers.protocol import Explainer
from faithbench.explainers.selection import Selected
from faithbench.models.model import Model
from faithbench.models.shared_passes import per_output


def seed_of(seed: int, example_id: str) -> int:
    """Derive an example's own seed, so that order, resume and subset never change a score."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{example_id}".encode()).digest()[:7])


def explain(explainer: Explainer, model: Model, batch: Batch) -> torch.Tensor:
    """Explain a batch's targets; start and end of an answer are explained apart and added."""
    first, *rest = (explainer(model, part) for part in per_output(model, batch))
    return sum(rest, first)


def attribute(model: Model, chosen: Selected, batch: Batch) -> list[Attribution]:
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
                target=_target(batch, row),
                every_score=table[row, : len(encoding.ids)],
                seconds=(elapsed + cost.shared_seconds) / count,
                forwards=None if chosen.replayed else _part(cost.forwards, count, row),
                backwards=None if chosen.replayed else _part(cost.backwards, count, row),
                gap=gaps[row],
            )
        )
    return attributions


def _target(batch: Batch, row: int) -> Target:
    found = batch.targets[row].tolist()
    return found if isinstance(found, int) else (int(found[0]), int(found[1]))


def _part(total: int, count: int, row: int) -> int:
    """Return one of `count` whole parts, as equal as can be, that add up to the total."""
    return total // count + (row < total % count)


def _gaps(chosen: Selected, model: Model, batch: Batch, scores: torch.Tensor) -> list[float | None]:
    """Ask an explainer that promises a sum how far it missed it, outside the clock."""
    gaps = getattr(chosen.explainer, "gaps", None)
    if gaps is None or len(model.outputs) > 1:
        return [None] * len(batch.ids)
    return [float(gap) for gap in gaps(model, batch, scores)]

"""From a batch to attributions: timed, counted and checked."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from faithbench.core.errors import (
    FaithbenchError,
    NoMemoryError,
    WrongAnswerError,
    is_out_of_memory,
)
from faithbench.core.text import readable
from faithbench.core.types import Attribution, Batch, Target
from faithbench.explainers.protocol import Explainer, gaps_of, needs_training
from faithbench.explainers.selection import Selected
from faithbench.models.encoding import collate
from faithbench.models.session import Session


def seed_of(seed: int, example_id: str) -> int:
    """Derive an example's own seed, so that order, resume and subset never change a score."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{example_id}".encode()).digest()[:7])


def explain(session: Session, explainer: Explainer, batch: Batch) -> torch.Tensor:
    """Explain a batch's targets; the scores of an answer's start and end are added."""
    companies = session.companies(batch)
    if len(companies) == 1:
        return _explain_together(session, explainer, batch)
    parts = [_explain_together(session, explainer, company.batch) for company in companies]
    scores = parts[0].new_zeros(batch.ids.shape)
    for company, part in zip(companies, parts, strict=True):
        if part.shape != company.batch.ids.shape:
            return part  # callers refuse it, in their own words
        scores[list(company.rows), : part.shape[1]] = part.detach()
    return scores


def _explain_together(session: Session, explainer: Explainer, batch: Batch) -> torch.Tensor:
    first, *rest = (explainer(session, part) for part in session.per_output(batch))
    return sum(rest, first)


def _gaps(
    session: Session, explainer: Explainer, batch: Batch, scores: torch.Tensor
) -> list[float | None]:
    """Return how far each example's scores miss their promised sum, in the order of the batch."""
    gaps: dict[int, float | None] = {}
    for company in session.companies(batch):
        width = company.batch.ids.shape[1]
        own = scores if company.batch is batch else scores[list(company.rows), :width]
        gaps |= zip(company.rows, gaps_of(explainer, session, company.batch, own), strict=True)
    return [gaps[row] for row in range(len(batch.encodings))]


@contextmanager
def naming_failures(name: str, example: Callable[[], str]) -> Iterator[None]:
    """Turn an exception of an explainer into one line: explainer, example and error."""
    try:
        yield
    except WrongAnswerError as error:
        raise FaithbenchError(f"explainer {name!r}: {error}") from error
    except (FaithbenchError, torch.OutOfMemoryError):
        raise  # already a sentence, or handled by a smaller batch
    except Exception as error:
        kind = NoMemoryError if is_out_of_memory(error) else FaithbenchError
        raise kind(
            f"explainer {name!r} failed on {example()}: {type(error).__name__}: "
            f"{readable(str(error)) or 'no message'} (--debug shows the traceback)"
        ) from error


def attribute(session: Session, selected: Selected, batch: Batch) -> list[Attribution]:
    """Run one explainer on a batch; time it, count its passes and check its scores."""
    if needs_training(selected.explainer):
        raise FaithbenchError(
            f"explainer {selected.label!r} learns from a task's training split, which `faithbench "
            "run` and `evaluate` alone hand over; choose another explainer here"
        )
    before, start = session.meter.total, time.perf_counter()
    with naming_failures(selected.name, lambda: _failing_example(session, selected, batch)):
        scores = explain(session, selected.explainer, batch)
    if not isinstance(scores, torch.Tensor):
        raise FaithbenchError(
            f"explainer {selected.name!r} returned a {type(scores).__name__}; it must return a "
            "tensor with one score per token"
        )
    session.synchronise()
    elapsed = time.perf_counter() - start
    cost = session.meter.since(before)
    count = len(batch.encodings)
    if scores.shape != batch.ids.shape:
        raise FaithbenchError(
            f"explainer {selected.name!r} gave scores of shape {tuple(scores.shape)} for tokens of "
            f"shape {tuple(batch.ids.shape)}; it must give one score per token"
        )
    table = scores.detach().cpu().double().numpy()
    gaps = _gaps(session, selected.explainer, batch, scores)
    targets = _targets(batch)
    attributions = []
    for row, encoding in enumerate(batch.encodings):
        evidence_scores = table[row, : len(encoding.ids)][encoding.erasable]
        if not np.isfinite(evidence_scores).all():
            raise FaithbenchError(
                f"explainer {selected.name!r} gave a score that is not finite for example "
                f"{encoding.example.id!r}; scores must be numbers"
            )
        attributions.append(
            Attribution(
                encoding=encoding,
                target=targets[row],
                every_score=table[row, : len(encoding.ids)],
                seconds=(elapsed + cost.shared_seconds) / count,
                forwards=None if selected.replayed else _part(cost.forwards, count, row),
                backwards=None if selected.replayed else _part(cost.backwards, count, row),
                gap=gaps[row],
                elsewhere=None if selected.replayed else cost.elsewhere / count,
            )
        )
    return attributions


def _failing_example(session: Session, selected: Selected, batch: Batch) -> str:
    """Find the example a batch failed on by halving it: at most one more batch of work."""
    rows = range(len(batch.encodings))
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        rows = half if _fails(session, selected.explainer, batch, half) else rows[len(half) :]
    names = [encoding.example.id for encoding in batch.encodings]
    if len(names) == 1 or _fails(session, selected.explainer, batch, rows):
        return f"example {names[rows[0]]!r}"
    # It fails on these examples together only, or not every time.
    return f"a batch of {len(names)} examples ({names[0]!r} to {names[-1]!r})"


def _fails(session: Session, explainer: Explainer, batch: Batch, rows: range) -> bool:
    targets = _targets(batch)
    part = collate(
        session.model,
        [batch.encodings[row] for row in rows],
        [targets[row] for row in rows],
        [batch.seeds[row] for row in rows],
        batch.seed,
    )
    try:
        explain(session, explainer, part)
    except Exception:  # whatever it raised before, it may raise anything now
        return True
    return False


def _targets(batch: Batch) -> list[Target]:
    """Return the targets on the host, in one copy."""
    targets = batch.targets.tolist()
    return [t if isinstance(t, int) else (int(t[0]), int(t[1])) for t in targets]


def _part(total: int, count: int, row: int) -> int:
    """Return the share of a row: whole numbers, as equal as can be, that add up to the total."""
    return total // count + (row < total % count)

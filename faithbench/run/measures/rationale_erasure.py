"""Measurements that need the network but are not erasure metrics, per example of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, float64, from_numpy, zeros

from faithbench.core.erasure import Operator
from faithbench.core.types import Attribution, Batch, Encoding
from faithbench.data.kinds.kind import Prediction
from faithbench.data.rationales import without_rationale
from faithbench.data.windows import erased_rows, parts_of
from faithbench.explainers.protocol import reads_model
from faithbench.metrics.plausibility import tpr_drop
from faithbench.metrics.registry import wanted
from faithbench.metrics.stability import largest_change
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.models.session import Session
from faithbench.run.attribute import naming_failures, seed_of
from faithbench.run.job import Cell, Job
from faithbench.run.measures.sensitivity import Asked, max_sensitivities


def sensitivity(
    job: Job,
    explained: Sequence[Sequence[Attribution]],
    encodings: Sequence[Encoding],
    predicted: Sequence[Prediction],
    probed: frozenset[str],
    tell: Callable[[Cell, Sequence[int]], None],
) -> list[list[dict[str, float | None]]]:
    """Return per cell max_sensitivity of the sampled examples, if wanted; None for the others.

    `explained` has each cell's attributions of the encodings. A text read in windows has the
    value of the most sensitive one. Scores that are only read back have none: a changed input
    cannot be explained. Scores that do not depend on the model have none either: they would be
    perfectly steady for the wrong reason. `tell` is called before each explanation, with the
    indices of the texts that it is about.
    """
    metric = wanted(largest_change, job.metrics)
    if metric is None:
        return [[{} for _ in encodings] for _ in job.cells]
    values: list[list[dict[str, float | None]]] = [
        [{metric.name: None} for _ in encodings] for _ in job.cells
    ]
    moved = [
        number
        for number, cell in enumerate(job.cells)
        if reads_model(cell.selected.explainer) and not cell.selected.replayed
    ]
    sample = [i for i, encoding in enumerate(encodings) if encoding.example.id in probed]
    # Windows and choices are rows of their own, whose scores as they are were not kept.
    together = [i for i in sample if not encodings[i].windows]
    for texts in filter(None, [together, *([i] for i in sample if encodings[i].windows)]):
        parts = [(i, part) for i in texts for part in parts_of(encodings[i])]
        batch = collate(
            job.model,
            [part for _, part in parts],
            [predicted[i].target for i, _ in parts],
            [seed_of(job.seed, encodings[i].example.id) for i, _ in parts],
            job.seed,
        )
        asked = [
            Asked(
                job.cells[number].selected.label,
                _Told(job.cells[number], texts, tell),
                _scores_of([explained[number][i] for i in texts], batch)
                if texts is together
                else None,
            )
            for number in moved
        ]
        for number, of_parts in zip(moved, max_sensitivities(job.model, asked, batch), strict=True):
            for i in texts:
                own = [v for v, (text, _) in zip(of_parts, parts, strict=True) if text == i]
                values[number][i] = {metric.name: largest_change(own)}
    return values


@dataclass(frozen=True)
class _Told:
    """The explainer of a cell, which tells of each call and names what it fails on."""

    cell: Cell
    texts: Sequence[int]
    tell: Callable[[Cell, Sequence[int]], None]

    def __call__(self, session: Session, batch: Batch) -> Tensor:
        """Explain the batch."""
        self.tell(self.cell, self.texts)
        names = list(dict.fromkeys(encoding.example.id for encoding in batch.encodings))
        changed = f"a slightly changed example {names[0]!r}"
        if len(names) > 1:
            changed = f"slightly changed examples ({names[0]!r} to {names[-1]!r})"
        with naming_failures(self.cell.selected.name, lambda: changed):
            return self.cell.selected.explainer(session, batch)


def _scores_of(attributions: Sequence[Attribution], batch: Batch) -> Tensor:
    """Return the scores of attributions as a table as wide as the batch, on the CPU."""
    scores = zeros(batch.ids.shape, dtype=float64, device="cpu")
    for row, attribution in enumerate(attributions):
        scores[row, : len(attribution.every_score)] = from_numpy(attribution.every_score)
    return scores


def right_without_rationale(
    job: Job, engine: Engine, encodings: Sequence[Encoding]
) -> list[bool | None]:
    """Return whether the label is found with the rationale's tokens erased, if that is wanted."""
    if wanted(tpr_drop, job.metrics) is None:
        return [None] * len(encodings)
    return labels_without_rationale(engine, encodings, job.operator)


def labels_without_rationale(
    engine: Engine, encodings: Sequence[Encoding], operator: Operator
) -> list[bool | None]:
    """Erase rationales, and return whether a classifier still finds the labels.

    None for an example of whose rationale the model reads nothing.
    """
    token_id = engine.model.erasure_id(operator)
    kept = [without_rationale(encoding) for encoding in encodings]
    rows = {
        i: erased_rows(encodings[i], keep, operator, token_id)
        for i, keep in enumerate(kept)
        if keep is not None
    }
    results: list[bool | None] = [None] * len(encodings)
    if rows:
        examples = [encodings[i].example for i in rows]
        right = engine.model.kind.finds_labels(engine, list(rows.values()), examples)
        if right is not None:
            for i, is_right in zip(rows, right, strict=True):
                results[i] = is_right
    return results

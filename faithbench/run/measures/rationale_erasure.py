"""Measurements that need the network but are not erasure metrics, per example of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from faithbench.core.erasure import Operator
from faithbench.core.types import Encoding, Target
from faithbench.data.kinds.kind import Prediction
from faithbench.data.rationales import without_rationale
from faithbench.data.windows import erased_rows, parts_of
from faithbench.explainers.protocol import reads_model
from faithbench.metrics.plausibility import tpr_drop
from faithbench.metrics.registry import wanted
from faithbench.metrics.stability import largest_change
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.run.attribute import naming_failures, seed_of
from faithbench.run.job import Cell, Job
from faithbench.run.measures.sensitivity import max_sensitivity


def sensitivity(
    job: Job,
    cell: Cell,
    encodings: Sequence[Encoding],
    predicted: Sequence[Prediction],
    probed: frozenset[str],
    tell: Callable[[int], None],
) -> list[dict[str, float | None]]:
    """Return max_sensitivity of the sampled examples, if it is wanted; None for the others.

    A text read in windows has that of the most sensitive one. Scores that are only read back
    have none: a changed input cannot be explained. Scores that do not depend on the model have
    none either: they would be perfectly steady for the wrong reason. `tell` is called before
    each measurement, with the number of examples before it.
    """
    metric = wanted(largest_change, job.metrics)
    if metric is None:
        return [{}] * len(encodings)
    measured = reads_model(cell.selected.explainer) and not cell.selected.replayed
    values: list[dict[str, float | None]] = []
    for number, (encoding, prediction) in enumerate(zip(encodings, predicted, strict=True)):
        value: float | None = None
        if measured and encoding.example.id in probed:
            tell(number)
            value = _sensitivity(job, cell, encoding, prediction.target)
        values.append({metric.name: value})
    return values


def _sensitivity(job: Job, cell: Cell, encoding: Encoding, target: Target) -> float | None:
    parts = parts_of(encoding)
    seeds = [seed_of(job.seed, encoding.example.id)] * len(parts)
    batch = collate(job.model, parts, [target] * len(parts), seeds, job.seed)
    changed = f"a slightly changed example {encoding.example.id!r}"
    with naming_failures(cell.selected.name, lambda: changed):
        windows = max_sensitivity(job.model, cell.selected.explainer, batch)
    return largest_change(windows)


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

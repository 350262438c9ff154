"""Compare models by how well the same explainers explain them, example by example.

A model that was trained to be explained stands against a plain one here. Each side may be several
models, such as the seeds of one training: an example's value is then the mean over them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.spec import setting_text
from faithbench.records.conditions import Conditions, describe_field, differing
from faithbench.records.entrants import pooled
from faithbench.records.record import read
from faithbench.records.store import StoredRecord, record_files, stored_records
from faithbench.stats.pairwise import holm, paired_tests, rank_sum
from faithbench.stats.signed_rank import PairedTest
from faithbench.stats.summaries import Column


@dataclass(frozen=True)
class ModelPair:
    """One explainer on two sides of models: means, and tests over the same examples.

    `signed_rank` is paired (McNemar for 0/1 values), and `adjusted` its p after Holm over all
    explainers that are compared; `rank_sum` ignores the pairs, as SaLoss does. `n` counts the
    examples that have a value on both sides.
    """

    explainer: str
    first: float
    second: float
    n: int
    signed_rank: PairedTest
    rank_sum: PairedTest
    adjusted: float | None = None


@dataclass(frozen=True)
class ModelRecords:
    """The records of one side, by explainer: one per model and explainer."""

    name: str
    by_explainer: dict[str, tuple[StoredRecord, ...]]

    @property
    def first(self) -> StoredRecord:
        """Any record of the side, for what all of them share."""
        return next(iter(self.by_explainer.values()))[0]

    def right(self, example: str) -> bool:
        """Return whether all models of the side predict an example right."""
        rows = (stored.by_id[example] for stored in next(iter(self.by_explainer.values())))
        return all(row.right for row in rows)

    def values(self, explainer: str, metric: str, ids: Sequence[str]) -> Column:
        """Return the mean over models of each example's value, None where none has any."""
        records = self.by_explainer[explainer]
        return [pooled([stored.by_id[example] for stored in records], metric) for example in ids]


def find_models(words: Sequence[str], task: str, results: Path) -> tuple[ModelRecords, ...]:
    """Find the records of each side: a model's name, or several with commas.

    All must be of the same examples under the same conditions, apart from the model.
    """
    records = stored_records(results, task)
    by_model: dict[str, dict[str, StoredRecord]] = {}
    for stored in records:
        model, label = stored.record.model.name, _label(stored, records)
        mine = by_model.setdefault(model, {})
        if label in mine:
            raise FaithbenchError(
                f"{label} has two records of model {model!r}: {mine[label].path} and "
                f"{stored.path}; compare in a folder that has one"
            )
        mine[label] = stored
    sides = tuple(_side(word, by_model) for word in words)
    _check_conditions(sides)
    return sides


def recorded_models(results: Path, task: str) -> set[str]:
    """Return the names of the models that have a record of a task, none if there is no folder."""
    records = (read(path) for path, _ in record_files(results))
    return {record.model.name for record in records if record.task.name == task}


def shared_explainers(sides: Sequence[ModelRecords]) -> list[str]:
    """Return the labels that every model of every side has, in the order of the first side."""
    rest = [set(side.by_explainer) for side in sides[1:]]
    return [label for label in sides[0].by_explainer if all(label in other for other in rest)]


def compare_models(
    first: ModelRecords,
    second: ModelRecords,
    metric: str,
    explainers: Sequence[str],
    ids: Sequence[str],
) -> list[ModelPair]:
    """Test each explainer on one side against itself on the other."""
    pairs = list(_pairs(first, second, metric, explainers, ids))
    tested = [i for i, pair in enumerate(pairs) if pair.signed_rank.p is not None]
    adjusted = dict(zip(tested, holm([pairs[i].signed_rank.p or 0.0 for i in tested]), strict=True))
    return [replace(pair, adjusted=adjusted.get(i)) for i, pair in enumerate(pairs)]


def examples_of(
    sides: Sequence[ModelRecords], *, right: bool = False, label: int | None = None
) -> list[str]:
    """Return the ids to compare: all, those that all models get right, those of one gold class."""
    rows = sides[0].first.rows
    return [
        row.id
        for row in rows
        if (label is None or row.label == label)
        and (not right or all(side.right(row.id) for side in sides))
    ]


def _pairs(
    first: ModelRecords,
    second: ModelRecords,
    metric: str,
    explainers: Sequence[str],
    ids: Sequence[str],
) -> Iterator[ModelPair]:
    for label in explainers:
        records = (*first.by_explainer[label], *second.by_explainer[label])
        if not all(metric in stored.record.metrics for stored in records):
            continue
        columns = [side.values(label, metric, ids) for side in (first, second)]
        both = [(a, b) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
        if not both:
            continue
        left, right = (list(column) for column in zip(*both, strict=True))
        yield ModelPair(
            explainer=label,
            first=math.fsum(left) / len(left),
            second=math.fsum(right) / len(right),
            n=len(both),
            signed_rank=paired_tests([left, right], [(0, 1)])[0],
            rank_sum=rank_sum(left, right),
        )


def _side(word: str, by_model: dict[str, dict[str, StoredRecord]]) -> ModelRecords:
    """Return the records of the models that a word names, of explainers that all of them have."""
    names = [Path(name.strip()).name for name in word.split(",") if name.strip()]
    for name in names:
        if name not in by_model:
            raise unknown("model in these records", name, by_model)
    shared = [
        label for label in by_model[names[0]] if all(label in by_model[name] for name in names)
    ]
    if not shared:
        raise FaithbenchError(f"no explainer has a record of every model of {word}; run one on all")
    records = {label: tuple(by_model[name][label] for name in names) for label in shared}
    return ModelRecords(word, records)


def _label(stored: StoredRecord, records: Sequence[StoredRecord]) -> str:
    """Return an explainer's name, with the settings in which records of that name differ."""
    mine = stored.record.explainer
    others = [s.record.explainer.settings for s in records if s.record.explainer.name == mine.name]
    varied = [key for key in mine.settings if len({str(o.get(key)) for o in others}) > 1]
    told = ",".join(f"{key}={setting_text(mine.settings[key])}" for key in varied)
    return f"{mine.name}:{told}" if told else mine.name


def _check_conditions(sides: Sequence[ModelRecords]) -> None:
    """Refuse records of other examples, or that were made in another way."""

    def besides_model(stored: StoredRecord) -> Conditions:
        return replace(stored.conditions, model_sha256="", model="")

    every = [s for side in sides for records in side.by_explainer.values() for s in records]
    fields = differing([besides_model(stored) for stored in every])
    if fields:
        raise FaithbenchError(
            f"the records of these models differ in {', '.join(map(describe_field, fields))}; run "
            "the same explainers on each model with the same options"
        )

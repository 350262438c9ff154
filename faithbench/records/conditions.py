"""The conditions of a run: what two records must share to be comparable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from faithbench.core.files import digest_of
from faithbench.records.rows import ResultRow
from faithbench.records.schema import FreshFacts, Record


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Everything two records must share, apart from explainer, seeds and versions of metrics.

    `ids` is a digest of the example ids, made by `digest_of_ids`. A model is its digest: its
    name, and the number `n` of examples, are there to be shown and are not compared. `fresh` says
    how the classifiers of `faithbench fresh` were trained, and is empty for runs.

    The one description of them: a job says its conditions before it runs, `conditions_of` reads
    the same ones back from the record, and the identity of a record is made of them.
    """

    task: str
    task_version: int
    source: str
    data_sha256: str
    split: str
    ids: str
    model_sha256: str
    dtype: str
    protocol: int
    operator: str
    erasure_token: str
    long: str
    fresh: str = ""
    model: str = field(compare=False)
    n: int = field(compare=False)


def conditions_of(record: Record, rows: Sequence[ResultRow]) -> Conditions:
    """Return the conditions under which a record and its rows were made."""
    task, model, protocol = record.task, record.model, record.protocol
    return Conditions(
        task=task.name,
        task_version=task.version,
        source=task.source,
        data_sha256=task.data_sha256,
        split=task.split,
        ids=digest_of_ids(row.id for row in rows),
        model_sha256=model.digest,
        dtype=model.dtype,
        protocol=protocol.version,
        operator=protocol.operator,
        erasure_token=protocol.erasure_token,
        long=protocol.long,
        fresh="" if record.fresh is None else _training(record.fresh),
        model=model.name,
        n=len(rows),
    )


def _training(fresh: FreshFacts) -> str:
    """Describe how classifiers were trained on rationales, all but the rationales themselves."""
    data = digest_of([fresh.train, fresh.train_sha256, fresh.dev, fresh.dev_sha256])
    start = digest_of([fresh.base_sha256, fresh.recipe])
    return f"{fresh.ratio:g} ({fresh.form}), {fresh.train} texts {data[:6]}, recipe {start[:6]}"


def digest_of_ids(ids: Iterable[str]) -> str:
    """Digest the ids of examples, whatever their order: values are paired by id, not by line."""
    return hashlib.sha256(json.dumps(sorted(ids)).encode()).hexdigest()


def differing(conditions: Iterable[Conditions]) -> list[str]:
    """Return the names of the fields in which some of these conditions differ."""
    every = list(conditions)
    compared = [f.name for f in fields(Conditions) if f.compare]
    return [name for name in compared if len({getattr(each, name) for each in every}) > 1]


_TITLES = {
    "task_version": "task version",
    "source": "data source",
    "data_sha256": "data sha256",
    "ids": "example ids",
    "model_sha256": "model digest",
    "protocol": "protocol version",
    "erasure_token": "erasure token",
    "long": "long texts",
    "fresh": "ratio or training of the fresh classifiers",
}


def describe_field(name: str) -> str:
    """Return a field's name in words."""
    return _TITLES.get(name, name)


def describe_value(conditions: Conditions, name: str) -> str:
    """Return a field's value in words, digests cut to six characters."""
    if name == "ids":
        return f"{conditions.n} examples, {conditions.ids[:6]}"
    if name == "model_sha256":
        return f"{conditions.model}, {conditions.model_sha256[:6]}"
    value = str(getattr(conditions, name)) or "none"
    return value[:6] if name == "data_sha256" else value

"""On what terms a record was made: only records of the same terms may be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields

from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record


@dataclass(frozen=True)
class Conditions:
    """What two records must share, apart from explainer, seed and versions of metrics.

    `ids` digests the ids of the examples in any order. A model is its weights; its name and the
    number of examples are kept to speak of them.
    """

    task: str
    task_version: int
    source: str
    data_sha256: str
    split: str
    ids: str
    weights_sha256: str
    dtype: str
    protocol: int
    operator: str
    erasure_token: str
    long: str
    model: str = field(compare=False)
    n: int = field(compare=False)


_SAID = {
    "task_version": "task version",
    "source": "data source",
    "data_sha256": "data sha256",
    "ids": "example ids",
    "weights_sha256": "model weights",
    "protocol": "protocol version",
    "erasure_token": "erasure token",
    "long": "long texts",
}


def conditions_of(record: Record, rows: Sequence[ResultRow]) -> Conditions:
    """Return the terms of a record and its rows."""
    ids = json.dumps(sorted(row.id for row in rows)).encode()
    task, model, protocol = record.task, record.model, record.protocol
    return Conditions(
        task=task.name,
        task_version=task.version,
        source=task.source,
        data_sha256=task.data_sha256,
        split=task.split,
        ids=hashlib.sha256(ids).hexdigest(),
        weights_sha256=model.weights_sha256,
        dtype=model.dtype,
        protocol=protocol.version,
        operator=protocol.operator,
        erasure_token=protocol.erasure_token,
        long=protocol.long,
        model=model.name,
        n=len(rows),
    )


def differing(terms: Iterable[Conditions]) -> list[str]:
    """Name the fields in which some of these terms differ."""
    found = list(terms)
    compared = [f.name for f in fields(Conditions) if f.compare]
    return [name for name in compared if len({getattr(t, name) for t in found}) > 1]


def say_field(name: str) -> str:
    """Return a field's name in words."""
    return _SAID.get(name, name)


def say_value(terms: Conditions, name: str) -> str:
    """Return a field's value, digests cut to what a person can compare."""
    if name == "ids":
        return f"{terms.n} examples, {terms.ids[:6]}"
    if name == "weights_sha256":
        return f"{terms.model}, {terms.weights_sha256[:6]}"
    value = str(getattr(terms, name))
    return value[:6] if name == "data_sha256" else value

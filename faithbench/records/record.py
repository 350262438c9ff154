"""The record of one explainer x task x model: its schema, and how it is read and written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json, reason, replace_file
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.records.schema import (
    PROTOCOL,
    SCHEMA,
    CostFacts,
    EnvironmentFacts,
    ExplainerFacts,
    MetricFacts,
    ModelFacts,
    PrecisionFacts,
    ProtocolFacts,
    Record,
    RowsFacts,
    SourceFacts,
    SpanFacts,
    TaskFacts,
    TimingFacts,
)

__all__ = [
    "PROTOCOL",
    "SCHEMA",
    "UPGRADES",
    "CostFacts",
    "Count",
    "EnvironmentFacts",
    "ExplainerFacts",
    "Facts",
    "MetricFacts",
    "ModelFacts",
    "PrecisionFacts",
    "ProtocolFacts",
    "Record",
    "RowsFacts",
    "SourceFacts",
    "SpanFacts",
    "TaskFacts",
    "TimingFacts",
    "dumps",
    "read",
    "write",
]
# Step n takes a record of schema n and returns one of schema n + 1; it edits nothing in place.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def dumps(record: Record) -> str:
    """Return the record's one and only JSON text."""
    data = record.model_dump(by_alias=True)
    return json.dumps(data, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write(record: Record, path: Path) -> None:
    """Write the record so that a reader finds the old file or the new one, never half of it."""
    try:
        replace_file(path, dumps(record).encode())
    except (OSError, UnicodeEncodeError) as error:
        raise FaithbenchError(
            f"cannot write record {path}: {reason(error)}; "
            "free the place or choose another folder with --results"
        ) from error


def read(path: Path) -> Record:
    """Read a record of this schema or an older one."""
    data = _upgrade(_load(path), path)
    try:
        # Strict, and from JSON text: there a list is a tuple but "3" is not a number.
        return Record.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise FaithbenchError(
            f"record {path}: {describe_error(error)}; mend the file or run the cell again"
        ) from error


def _load(path: Path) -> dict[str, Any]:
    try:
        data = parse_json(path.read_bytes().decode())
    except FileNotFoundError as error:
        raise FaithbenchError(f"no record {path}; check the path or run the cell first") from error
    except OSError as error:
        raise FaithbenchError(
            f"cannot read record {path}: {error.strerror}; check the path"
        ) from error
    except ValueError as error:
        raise FaithbenchError(
            f"record {path} is not valid JSON: {error}; mend the file or run the cell again"
        ) from error
    if not isinstance(data, dict):
        raise FaithbenchError(f"record {path} should hold a JSON object; check the path")
    return data


def _upgrade(data: dict[str, Any], path: Path) -> dict[str, Any]:
    found = data.get("schema")
    if type(found) is not int:  # a bool is an int to isinstance
        raise FaithbenchError(
            f"record {path}: 'schema' should be an integer, found {found!r}; is this a record?"
        )
    if found > SCHEMA:
        raise FaithbenchError(
            f"record {path} was made by a newer faithbench "
            f"(schema {found}, this one reads up to {SCHEMA}): upgrade faithbench"
        )
    for version in range(found, SCHEMA):
        if version not in UPGRADES:
            raise FaithbenchError(
                f"record {path} has schema {found}, which this faithbench cannot upgrade to "
                f"{SCHEMA}; run the cell again"
            )
        data = {**UPGRADES[version](data), "schema": version + 1}
    return data

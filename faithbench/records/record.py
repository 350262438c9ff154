"""Read, write and upgrade the record of one explainer x task x model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json, reason, replace_file
from faithbench.core.schema import describe_error
from faithbench.core.seals import seal_json, unseal_json
from faithbench.records.model_digests import add_model_digest
from faithbench.records.schema import SCHEMA, Record

UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: add_model_digest, 2: dict}
"""Upgrade n takes the data of a record of schema n and returns those of schema n + 1, as new data.

A new field with a default needs none: older records are read as having the default.
"""
_SEALED: Final = 3
"""Records of this schema and of later ones name the sha256 of their own content."""


def dumps(record: Record) -> str:
    """Return the record's JSON text, with its sha256: equal records give equal bytes."""
    data = record.model_dump(by_alias=True)
    # Only records of `faithbench fresh` have this part: those of runs stay as they were before it.
    if record.fresh is None:
        del data["fresh"]
    # Likewise only those of explainers that run another network have this cost.
    if record.cost.elsewhere_per_example is None:
        del data["cost"]["elsewhere_per_example"]
    # A first revision goes without saying.
    if record.explainer.revision == 1:
        del data["explainer"]["revision"]
    # And only those of runs on a GPU have these three.
    if record.timing.token_budget is None:
        del data["timing"]["token_budget"]
    if record.environment.tf32 is None:
        del data["environment"]["tf32"]
    if record.environment.compiled is None:
        del data["environment"]["compiled"]
    return seal_json(data)


def write(record: Record, path: Path) -> None:
    """Write a record so that a reader finds the old file or the new one, never half of one."""
    try:
        replace_file(path, dumps(record).encode())
    except (OSError, UnicodeEncodeError) as error:
        raise FaithbenchError(
            f"cannot write record {path}: {reason(error)}; "
            "fix that or choose another folder with --results"
        ) from error


def read(path: Path) -> Record:
    """Read a record of this schema or an older one."""
    data = _upgrade(*_load(path), path)
    try:
        # Strict, and from JSON text: there a list is a tuple but "3" is not a number.
        return Record.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise FaithbenchError(
            f"record {path}: {describe_error(error)}; fix the file or run the explainer again"
        ) from error


def _load(path: Path) -> tuple[dict[str, Any], bytes]:
    """Return the object in a file, and the bytes of the file."""
    try:
        content = path.read_bytes()
        data = parse_json(content.decode())
    except FileNotFoundError as error:
        raise FaithbenchError(
            f"no record {path}; check the path or run the explainer first"
        ) from error
    except OSError as error:
        raise FaithbenchError(
            f"cannot read record {path}: {error.strerror}; check the path"
        ) from error
    except ValueError as error:
        raise FaithbenchError(
            f"record {path} is not valid JSON: {error}; fix the file or run the explainer again"
        ) from error
    if not isinstance(data, dict):
        raise FaithbenchError(f"record {path} should hold a JSON object; check the path")
    return data, content


def _upgrade(data: dict[str, Any], content: bytes, path: Path) -> dict[str, Any]:
    version = data.get("schema")
    if type(version) is not int:  # a bool is an int to isinstance
        raise FaithbenchError(
            f"record {path}: 'schema' should be an integer, found {version!r}; is this a record?"
        )
    if version > SCHEMA:
        raise FaithbenchError(
            f"record {path} was made by a newer faithbench "
            f"(schema {version}, this one reads up to {SCHEMA}): upgrade faithbench"
        )
    try:
        data = unseal_json(data, content, sealed=version >= _SEALED)
    except ValueError as error:
        raise FaithbenchError(
            f"record {path} is damaged, or was changed by hand: {error}; "
            "restore it, or run the explainer again"
        ) from error
    for step in range(version, SCHEMA):
        if step not in UPGRADES:
            raise FaithbenchError(
                f"record {path} has schema {version}, which this faithbench cannot upgrade to "
                f"{SCHEMA}; run the explainer again"
            )
        data = {**UPGRADES[step](data), "schema": step + 1}
    return data

"""The record of one network: what it is, and every measure of every text.

One JSON file per network, closed to unknown keys. It is written whole, after the last text, so
that a killed study measures at most the networks it was at again.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, ValidationError, model_validator

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json, reason, replace_file
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.core.seals import seal_json, unseal_json
from faithbench.records.schema import EnvironmentFacts, SourceFacts

SCHEMA: Final = 2
"""Raised when the form of the file changes; from 2 on, it has the sha256 of its content."""

VERSION: Final = 1
"""Raised when a measure changes: records of another version are measured again."""


class StudyTask(Facts):
    """The texts that were measured: the first `n` of the test split by the digest of their ids."""

    name: str
    version: int
    source: str
    data_sha256: str
    n: Count


class StudyNetwork(Facts):
    """The network; `strength` is the lambda of sparsegen, and `test` its scores on all of test.

    `trained` is false for the control that has its first, random weights.
    """

    name: str
    arch: str
    projection: str
    strength: float | None
    seed: Count
    vectors: str
    weights_sha256: str
    trained: bool = True
    test: dict[str, float] = Field(default_factory=dict)


class StudySettings(Facts):
    """Texts are cut at `max_tokens`; of each, at most `positions` h were asked for (Eq. 5)."""

    max_tokens: Count
    positions: Count


class StudyTiming(Facts):
    """CPU seconds; None for a training that was continued, of which only a part was timed."""

    training: float | None
    measuring: float


class StudyRecord(Facts):
    """All measures of one network; `values` has one entry per text for each name."""

    schema_: Literal[1, 2] = Field(default=SCHEMA, alias="schema")
    study: Literal["sparse-attention"] = "sparse-attention"
    version: int = VERSION
    task: StudyTask
    network: StudyNetwork
    settings: StudySettings
    texts: tuple[str, ...]
    values: dict[str, tuple[float | None, ...]]
    timing: StudyTiming
    environment: EnvironmentFacts
    source: SourceFacts

    @model_validator(mode="after")
    def _one_value_per_text(self) -> StudyRecord:
        for name, column in self.values.items():
            if len(column) != len(self.texts):
                raise ValueError(f"{name} has {len(column)} values for {len(self.texts)} texts")
        return self

    def is_of(self, task: StudyTask, network: StudyNetwork, settings: StudySettings) -> bool:
        """Return whether this is the record that would be made of these, by this version."""
        made = (self.version, self.task, self.network, self.settings)
        return made == (VERSION, task, network, settings)


def write_record(record: StudyRecord, folder: Path) -> Path:
    """Write a record under the name of its network; equal records give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record.network.name}.json"
    replace_file(path, seal_json(record.model_dump(by_alias=True)).encode())
    return path


def read_record(path: Path) -> StudyRecord | None:
    """Read a record; None if there is no such file."""
    try:
        data = parse_study_file(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FaithbenchError(
            f"cannot read study record {path}: {reason(error)}; remove it to measure again"
        ) from error
    try:
        return StudyRecord.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        raise FaithbenchError(
            f"study record {path}: {describe_error(error)}; remove it to measure again"
        ) from error


def parse_study_file(data: bytes) -> dict[str, Any]:
    """Return the object of a file of the study; raise ValueError if it is damaged, or too new."""
    content = parse_json(data.decode())
    schema = content.get("schema") if isinstance(content, dict) else None
    if not isinstance(content, dict) or schema not in (1, SCHEMA):
        raise ValueError(f"it has schema {schema!r}, this faithbench reads 1 to {SCHEMA}")
    return unseal_json(content, data, sealed=schema != 1)

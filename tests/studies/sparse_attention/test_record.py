"""The record of a network: written whole, read back equal, and closed to what it does not know."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import parse_sealed, seal_json
from faithbench.records.provenance import environment
from faithbench.records.schema import SourceFacts
from faithbench.studies.sparse_attention.record import (
    StudyNetwork,
    StudyRecord,
    StudySettings,
    StudyTask,
    StudyTiming,
    read_record,
    write_record,
)

NETWORK: dict[str, Any] = {
    "name": "mini-bilstm-sparsemax-seed0",
    "arch": "bilstm",
    "projection": "sparsemax",
    "strength": 0.0,
    "seed": 0,
    "vectors": "random",
    "weights_sha256": "ab" * 32,
    "test": {"accuracy": 0.75},
}


def made(**changes: Any) -> StudyRecord:
    """Return a record of two texts."""
    parts: dict[str, Any] = {
        "task": StudyTask(name="mini", version=1, source="folder", data_sha256="cd" * 32, n=2),
        "network": StudyNetwork(**NETWORK),
        "settings": StudySettings(max_tokens=12, positions=3),
        "texts": ("a", "é"),
        "values": {"tau_gradient_x": (0.25, None), "length": (3.0, 4.0)},
        "timing": StudyTiming(training=None, measuring=0.5),
        "environment": environment("cpu", 1),
        "source": SourceFacts(commit="0" * 40, dirty=False),
    }
    return StudyRecord(**parts | changes)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = made()
    path = write_record(record, tmp_path / "records")
    assert path == tmp_path / "records" / "mini-bilstm-sparsemax-seed0.json"
    assert read_record(path) == record
    first = path.read_bytes()
    assert write_record(record, tmp_path / "records").read_bytes() == first
    data = json.loads(first)
    assert list(data) == sorted(data) and (data["schema"], data["version"]) == (2, 1)
    assert data["values"]["tau_gradient_x"] == [0.25, None], "a missing value is null"


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read_record(tmp_path / "none.json") is None


def test_every_text_has_its_values() -> None:
    with pytest.raises(ValidationError, match="length has 1 values for 2 texts"):
        made(values={"length": (3.0,)})
    with pytest.raises(ValidationError, match="finite number"):
        made(values={"length": (3.0, float("nan"))})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data | {"more": 1}, "unknown key 'more'"),
        (lambda data: data | {"schema": 3}, "has schema 3, this faithbench reads 1 to 2"),
        (lambda data: data | {"study": "other"}, "key 'study': Input should be 'sparse-attention'"),
        (lambda data: {k: v for k, v in data.items() if k != "values"}, "key 'values': Field req"),
        (lambda data: data | {"texts": ["a"]}, "length has 2 values for 1 texts"),
        (lambda data: data | {"texts": "ab"}, "key 'texts': Input should be a valid"),
        (
            lambda data: data | {"settings": data["settings"] | {"positions": "3"}},
            "key 'settings.positions': Input should be a valid integer",
        ),
        (
            lambda data: data | {"network": data["network"] | {"seed": -1}},
            "key 'network.seed': Input should be greater than or equal to 0",
        ),
    ],
)
def test_a_file_of_another_form_is_refused(
    change: Callable[[Any], Any], said: str, tmp_path: Path
) -> None:
    path = write_record(made(), tmp_path)
    path.write_text(seal_json(change(parse_sealed(path.read_bytes()))))
    assert said in complaint(path)


def test_a_number_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = write_record(made(), tmp_path)
    path.write_text(path.read_text().replace("0.25", "0.35"))
    assert "its content does not match its sha256" in complaint(path)


def test_a_record_from_before_there_was_a_sha256_is_read(tmp_path: Path) -> None:
    path = write_record(made(), tmp_path)
    path.write_text(json.dumps(parse_sealed(path.read_bytes()) | {"schema": 1}))
    assert read_record(path) == made(schema=1)


@pytest.mark.parametrize(
    "content",
    [b"", b"[1]", b'{"schema": 1', b'{"schema": 1, "schema": 1}', b'{"schema": NaN}', b"\xff"],
)
def test_a_file_that_is_no_json_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_bytes(content)
    assert complaint(path).startswith(f"cannot read study record {path}: ")


def complaint(path: Path) -> str:
    """Return the one line that refuses a file, having checked that it says what to do."""
    with pytest.raises(FaithbenchError) as caught:
        read_record(path)
    said = str(caught.value)
    assert str(path) in said and "\n" not in said
    assert said.endswith("; remove it to measure again")
    return said


def test_a_record_is_of_its_task_network_settings_and_version() -> None:
    record = made()
    own = (record.task, record.network, record.settings)
    assert record.is_of(*own) and not made(version=0).is_of(*own)
    others: list[tuple[Any, ...]] = [
        (record.task.model_copy(update={"data_sha256": "ee" * 32}), *own[1:]),
        (own[0], record.network.model_copy(update={"weights_sha256": "ee" * 32}), own[2]),
        (*own[:2], record.settings.model_copy(update={"positions": 4})),
    ]
    assert [record.is_of(*other) for other in others] == [False] * 3

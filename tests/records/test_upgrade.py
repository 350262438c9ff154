"""Files of an older schema are written anew, under the names of today's runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.records.identity import identity_of, place_of, run_key
from faithbench.records.model_digests import MODEL_OF_WEIGHTS
from faithbench.records.passed import (
    PassedCheck,
    accepted_submissions,
    content_digest,
    write_passed,
)
from faithbench.records.record import dumps, read
from faithbench.records.rows import ResultRow, to_header, to_line
from faithbench.records.rows_file import read_keyed_rows
from faithbench.records.schema import Record
from faithbench.records.upgrade import upgrade_records, upgrade_submissions
from tests.support.records import RECORD, stored_json

WEIGHTS, MODEL = next(iter(MODEL_OF_WEIGHTS.items()))
ROW = ResultRow(
    id="a", target=0, label=0, right=True, probability=0.5, tokens=(), scores=(),
    values={"aopc": 0.25}, rows_asked=1, distinct_rows=1, forwards=None, backwards=None,
)  # fmt: skip


def old_record(folder: Path, weights: str, key: str = "") -> Path:
    """Write a record of schema 1, with its rows, where a run of that time put it."""
    model: dict[str, Any] = RECORD["model"] | {"name": "bundled:agnews", "weights_sha256": weights}
    record = Record.model_validate({**RECORD, "model": model})
    digest = identity_of(record, [ROW]).digest
    path = folder / f"{place_of(record, 'random', digest)}.json"
    path.parent.mkdir(parents=True)
    rows = path.with_name(f"{path.stem}.rows.jsonl")
    key = key or key_of(record)
    rows.write_bytes(to_header(key) + to_line(ROW))
    data = json.loads(dumps(record)) | {"schema": 1}
    del data["sha256"]
    data["rows"] = {"file": rows.name, "sha256": file_sha256(rows)}
    del data["model"]["sha256"]
    path.write_text(json.dumps(data))
    return path


def key_of(record: Record) -> str:
    digest, device = identity_of(record, [ROW]).digest, record.environment.device
    return run_key(digest, labels=["random"], chunk=16, budget=2048, device=device)


def test_a_record_of_a_bundled_model_is_renamed(tmp_path: Path) -> None:
    old = old_record(tmp_path, WEIGHTS)
    ((was, now),) = upgrade_records(tmp_path, chunk=16, budget=2048)
    new = tmp_path / now
    assert tmp_path / was == old and not old.parent.exists()
    record = read(new)
    assert stored_json(new)["schema"] == 3
    assert (record.model.sha256, record.model.weights_sha256) == (MODEL, WEIGHTS)
    key, rows = read_keyed_rows(new.with_name(record.rows.file), record.rows.sha256)
    assert rows == (ROW,) and key == key_of(record)
    assert now == f"{place_of(record, 'random', identity_of(record, rows).digest)}.json"
    assert sorted(path.name for path in new.parent.iterdir()) == [new.name, record.rows.file]
    assert [*upgrade_records(tmp_path, chunk=16, budget=2048)] == []


def test_a_record_of_another_model_keeps_its_name(tmp_path: Path) -> None:
    old = old_record(tmp_path, "0" * 64, key="of another run")
    rows = old.with_name(f"{old.stem}.rows.jsonl").read_bytes()
    ((was, now),) = upgrade_records(tmp_path, chunk=16, budget=2048)
    assert was == now and read(old).model.sha256 is None
    assert stored_json(old)["schema"] == 3
    assert old.with_name(f"{old.stem}.rows.jsonl").read_bytes() == rows


def test_a_record_of_schema_2_gets_its_sha256_and_nothing_else(tmp_path: Path) -> None:
    record = Record.model_validate(RECORD)
    path = tmp_path / f"{place_of(record, 'random', identity_of(record, [ROW]).digest)}.json"
    path.parent.mkdir(parents=True)
    rows = path.with_name(f"{path.stem}.rows.jsonl")
    rows.write_bytes(to_header(key_of(record)) + to_line(ROW))
    data = RECORD | {"schema": 2, "rows": {"file": rows.name, "sha256": file_sha256(rows)}}
    path.write_text(json.dumps(data))
    ((was, now),) = upgrade_records(tmp_path, chunk=16, budget=2048)
    assert was == now and stored_json(path) == data | {"schema": 3}
    assert sorted(path.parent.iterdir()) == sorted([path, rows])
    assert [*upgrade_records(tmp_path, chunk=16, budget=2048)] == []


def test_a_submission_that_passed_has_passed_after_the_upgrade(tmp_path: Path) -> None:
    submissions, passed = tmp_path / "submissions", tmp_path / "passed.json"
    checks = {}
    for name in ("mine", "theirs"):
        path = old_record(submissions / name / "records", WEIGHTS)
        inside = path.relative_to(submissions / name).as_posix()
        content = content_digest(submissions / name)
        checks[name] = PassedCheck(content=content, records=(inside,))
    write_passed(passed, checks)
    (submissions / "theirs" / "entry.toml").write_text("changed since")
    moved = dict(upgrade_submissions(submissions, passed, chunk=16, budget=2048))
    assert list(moved) == [f"{name}/{check.records[0]}" for name, check in checks.items()]
    after = accepted_submissions(submissions, passed)
    (mine,) = after.accepted
    assert mine.folder.name == "mine" and read(mine.folder / mine.records[0]).model.sha256 == MODEL
    (line,) = after.left_out
    assert "submissions/theirs: left out, its files are not those that passed" in line
    before = passed.read_bytes()
    assert [*upgrade_submissions(submissions, passed, chunk=16, budget=2048)] == []
    assert passed.read_bytes() == before


def test_an_upgrade_that_was_stopped_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_record(tmp_path, WEIGHTS)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda *_, **__: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            [*upgrade_records(tmp_path, chunk=16, budget=2048)]
    assert len([*tmp_path.rglob("*.json")]) == 2
    assert len([*upgrade_records(tmp_path, chunk=16, budget=2048)]) == 1
    assert len([*tmp_path.rglob("*.json")]) == 1


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="does not exist; check --records"):
        [*upgrade_records(tmp_path / "absent", chunk=16, budget=2048)]

"""Records: one JSON text per record, errors that name the key, older ones upgraded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.errors import FaithbenchError
from faithbench.records import record as records
from faithbench.records.record import dumps, read, write
from faithbench.records.schema import Record
from tests.support.records import METRIC, RECORD, forge_record, stored_json


def changed(**parts: Any) -> dict[str, Any]:
    return {**RECORD, **parts}


def saved(folder: Path, text: str) -> Path:
    path = folder / "r.json"
    path.write_text(text, encoding="utf-8")
    return path


def test_text_is_canonical() -> None:
    record = Record.model_validate(RECORD)
    text = dumps(record)
    assert record.schema_version == 3
    digest = json.loads(text)["sha256"]
    assert json.loads(text) == RECORD | {"sha256": digest} and len(digest) == 64
    assert text.endswith("}\n") and "négatif" in text and "schema_version" not in text
    assert [line.split('"')[1] for line in text.splitlines() if line.startswith('  "')] == sorted(
        [*RECORD, "sha256"]
    )
    assert '"accuracy": 1.0' in text, "a float field is a float, whatever it was made from"
    assert dumps(Record.model_validate(changed(schema=3))) == text


def test_write_read_write_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    write(Record.model_validate(RECORD), first)
    record = read(first)
    write(record, second)
    assert first.read_bytes() == second.read_bytes()
    kept = record.explainer.settings
    assert [(k, type(v)) for k, v in kept.items()] == [
        ("mode", str),
        ("on", bool),
        ("rate", float),
        ("steps", int),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_the_cost_of_another_network_is_written_only_where_there_is_one(tmp_path: Path) -> None:
    assert "elsewhere" not in dumps(Record.model_validate(RECORD))
    cost = {**RECORD["cost"], "elsewhere_per_example": 0.0625}
    text = dumps(Record.model_validate(changed(cost=cost)))
    assert json.loads(text) == changed(cost=cost, sha256=json.loads(text)["sha256"])
    assert dumps(read(saved(tmp_path, text))) == text


def test_only_runs_on_a_gpu_have_its_facts(tmp_path: Path) -> None:
    text = dumps(Record.model_validate(RECORD))
    assert not any(name in text for name in ("token_budget", "tf32", "compiled"))
    timing = {**RECORD["timing"], "token_budget": 16384}
    environment = {**RECORD["environment"], "tf32": False, "compiled": True}
    there = changed(timing=timing, environment=environment)
    write(Record.model_validate(there), tmp_path / "r.json")
    record = read(tmp_path / "r.json")
    assert (record.timing.token_budget, record.environment.tf32) == (16384, False)
    assert record.environment.compiled
    assert stored_json(saved(tmp_path, dumps(record))) == there


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.text(), st.booleans() | st.integers() | finite | st.text()),
    st.text(),
    finite,
    st.tuples(finite, finite) | st.none(),
)
def test_any_float_and_text_survives(
    tmp_path_factory: pytest.TempPathFactory,
    options: dict[str, bool | int | float | str],
    token: str,
    mean: float,
    ci95: tuple[float, float] | None,
) -> None:
    explainer = {**RECORD["explainer"], "settings": options}
    metrics = {token: {**METRIC, "mean": mean, "ci95": ci95}}
    record = Record.model_validate(changed(explainer=explainer, metrics=metrics))
    path = tmp_path_factory.getbasetemp() / "any.json"
    write(record, path)
    assert read(path) == record
    assert path.read_bytes() == dumps(read(path)).encode()


def test_a_failed_write_keeps_the_old_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        FaithbenchError, match=r"cannot write record .*r\.json: No space left.*--re"
    ):
        write(Record.model_validate(RECORD), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def edit(part: str, key: str, value: object) -> dict[str, Any]:
    return changed(**{part: {**RECORD[part], key: value}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1', r"r\.json is not valid JSON: .*line 1 column"),
        ('{"seed": 1, "seed": 2}', "key 'seed' appears twice"),
        ('{"seed": NaN}', "NaN is not a number"),
        ('{"seed": -Infinity}', "-Infinity is not a number"),
        ('{"seed": 1e999}', "1e999 is not a number"),
        ("[" * 100_000, "nested too deeply"),
        ("[1]", "should hold a JSON object"),
        ("{}", "'schema' should be an integer, found None"),
        ('{"schema": "1"}', "'schema' should be an integer, found '1'"),
        ('{"schema": 1.0}', "'schema' should be an integer, found 1.0"),
        ('{"schema": true}', "'schema' should be an integer, found True"),
        (
            '{"schema": 4, "hue": 1}',
            r"made by a newer faithbench \(schema 4, this one reads up to 3\): upgrade faithbench$",
        ),
        (
            '{"schema": 0}',
            "has schema 0, which this faithbench cannot upgrade to 3; run the",
        ),
        (edit("task", "hue", 1), r"r\.json: unknown key 'task\.hue'; fix the file"),
        (edit("task", "n", "3"), r"key 'task\.n': Input should be a valid integer"),
        (edit("task", "n", -1), r"key 'task\.n': Input should be greater than or equal to 0"),
        (edit("protocol", "operator", "burn"), r"key 'protocol\.operator': .*'mask', 'delete' or"),
        (edit("rows", "file", "../a"), r"key 'rows\.file': .*'\.\./a' should be a bare file name"),
        (edit("metrics", "x", {}), r"key 'metrics\.x\.version': Field required \(and 6 more\)"),
        (json.dumps(edit("model", "name", "\ud800") | {"schema": 2}), "Invalid JSON"),
        (changed(schema_version=1), "unknown key 'schema_version'"),
    ],
)
def test_a_bad_record_says_what_is_wrong(
    tmp_path: Path, text: str | dict[str, Any], message: str
) -> None:
    if isinstance(text, str):
        saved(tmp_path, text)
    else:
        forge_record(tmp_path / "r.json", text)
    with pytest.raises(FaithbenchError, match=message) as caught:
        read(tmp_path / "r.json")
    assert "\n" not in str(caught.value) and "r.json" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"mean": 0.25', '"mean": 0.75'),
        ('"seconds_total": 0.5', '"seconds_total": 0.4'),
        ('"schema": 3', '"schema": 2'),
        ('  "sha256": "', '  "sha257": "'),
        ("{\n", "{ \n"),
    ],
)
def test_a_record_that_was_changed_is_refused(tmp_path: Path, old: str, new: str) -> None:
    text = dumps(Record.model_validate(RECORD))
    assert old in text and read(saved(tmp_path, text)) == Record.model_validate(RECORD)
    with pytest.raises(FaithbenchError) as caught:
        read(saved(tmp_path, text.replace(old, new)))
    assert str(caught.value) == (
        f"record {tmp_path / 'r.json'} is damaged, or was changed by hand: its content does not "
        "match its sha256; restore it, or run the explainer again"
    )


def test_a_record_of_schema_2_has_no_sha256(tmp_path: Path) -> None:
    text = json.dumps(changed(schema=2))
    assert read(saved(tmp_path, text)) == Record.model_validate(RECORD)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"no record .*none\.json; check the path or run"):
        read(tmp_path / "none.json")
    with pytest.raises(FaithbenchError, match=r"cannot read record .*: Is a directory"):
        read(tmp_path)
    (tmp_path / "r.json").write_bytes(b"\xff")
    with pytest.raises(FaithbenchError, match="not valid JSON: 'utf-8' codec"):
        read(tmp_path / "r.json")


def test_older_records_are_upgraded_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_seeds(old: dict[str, Any]) -> dict[str, Any]:
        return {**old, "seeds": [old["start"]]}

    def drop_start(old: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in old.items() if key != "start"}

    monkeypatch.setattr(records, "UPGRADES", {0: add_seeds, 1: drop_start, 2: dict})
    old = {key: value for key, value in changed(schema=0, start=7).items() if key != "seeds"}
    assert read(saved(tmp_path, json.dumps(old))) == Record.model_validate(changed(seeds=(7,)))


def test_no_heavy_imports() -> None:
    code = (
        "import sys, faithbench.records.rows_writer, faithbench.records.provenance;"
        "import faithbench.stats.pairwise;"
        "sys.exit(bool({'torch', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

"""Records in a folder, and which of them a word means."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.store import matching, record_files, stored_records, telling_labels
from tests.support.stores import store

VALUES = {"aopc": [0.1, 0.2]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Two settings of lime, as `run` names their files, one random, one of another task."""
    folder = tmp_path / "sst2-bundled" / "tiny-000000"
    store(folder, "lime-11111111", VALUES, settings={"samples": 1000, "width": 0.25, "fast": False})
    twenty = {"samples": 20, "width": 0.25, "fast": False}
    store(folder, "lime-samples=20-22222222", VALUES, settings=twenty)
    store(folder, "random-33333333", VALUES)
    store(tmp_path / "imdb-bundled" / "tiny", "random-44444444", VALUES, task={"name": "imdb"})
    return tmp_path


def stems(word: str, results: Path) -> list[str]:
    return [s.path.stem for s in matching(word, stored_records(results, "sst2"), "there")]


def complaint(word: str, results: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        stems(word, results)
    return str(caught.value)


def test_labels_mean_what_run_shows(results: Path) -> None:
    assert stems("random", results) == ["random-33333333"]
    assert stems("lime", results) == ["lime-11111111"]
    assert stems("lime:samples=20", results) == ["lime-samples=20-22222222"]
    # Settings may be told in full, and numbers in another spelling.
    assert stems("lime:samples=1000,width=0.250,fast=False", results) == ["lime-11111111"]


def test_renamed_files_are_told_apart_by_settings(results: Path) -> None:
    for path in results.rglob("lime-*.json"):
        path.rename(path.with_name(f"mine-{path.name}"))
    assert len(stems("lime", results)) == 2
    assert stems("lime:samples=1000", results) == ["mine-lime-11111111"]
    assert telling_labels(matching("lime", stored_records(results, "sst2"), "")) == [
        "lime:samples=1000", "lime:samples=20",
    ]  # fmt: skip


def test_a_file_means_itself(results: Path) -> None:
    (path,) = results.rglob("lime-1*.json")
    assert stems(str(path), results) == ["lime-11111111"]
    (other,) = results.rglob("random-4*.json")
    assert complaint(str(other), results) == (
        f"record {other} is of task 'imdb', not of 'sst2'; give --task imdb, or a record from there"
    )
    assert complaint("none.json", results).startswith("no record none.json; check the path")


def test_what_is_not_there(results: Path) -> None:
    assert complaint("limee", results) == (
        "no recorded explainer named 'limee'; did you mean 'lime'? (looked in there); name one "
        "that is there, or run it first: faithbench run --task sst2 --explainer limee"
    )
    assert complaint("lime:samples=30", results) == (
        "no record of 'lime:samples=30' in there, only lime:samples=1000, lime:samples=20; "
        "name one of these, or run it first"
    )
    for setting in ("steps=3", "samples=many", "fast=true"):
        assert complaint(f"lime:{setting}", results).startswith(f"no record of 'lime:{setting}'")


def test_folders_without_the_task(results: Path, tmp_path: Path) -> None:
    with pytest.raises(
        FaithbenchError, match=r"no record of task 'squad' in .*, only of imdb, sst2;"
    ):
        stored_records(results, "squad")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FaithbenchError, match="empty, nor of any other; run the task first"):
        stored_records(tmp_path / "empty", "sst2")
    with pytest.raises(FaithbenchError, match=r"results folder .*nowhere does not exist; point"):
        stored_records(tmp_path / "nowhere", "sst2")


def test_hidden_folders_hold_no_records(results: Path) -> None:
    (results / ".neighbours").mkdir()
    (results / ".neighbours" / "lexical.json").write_text("{}")
    assert stems("random", results) == ["random-33333333"]
    (results / "stray.json").write_text("{}")
    assert "stray.json: 'schema' should be an integer" in complaint("random", results)


def test_files_come_in_the_order_of_their_paths_as_text(tmp_path: Path) -> None:
    for name in ("a/b.json", "a-c/d.json", "a/.partial/e.json", ".f/g.json", "a/b.rows.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    # A hyphen is before a slash; by folders, "a" would be before "a-c".
    assert record_files(tmp_path) == [
        (tmp_path / "a-c" / "d.json", "a-c/d.json"),
        (tmp_path / "a" / "b.json", "a/b.json"),
    ]
    assert record_files(tmp_path / "none") == []


def test_rows_are_checked(results: Path) -> None:
    (stored,) = matching("random", stored_records(results, "sst2"), "there")
    rows = stored.path.with_name(stored.record.rows.file)
    rows.write_bytes(rows.read_bytes().replace(b"0.1", b"0.9"))
    with pytest.raises(FaithbenchError, match="has sha256"):
        _ = stored.rows

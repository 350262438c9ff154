"""Files of a data folder: read row by row, and checked against the sums that a task pins."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from faithbench.core.types import Example
from faithbench.data.dataset import load_dataset, sources
from tests.support.builders import ROWS, complaint, make_task, put

pytestmark = pytest.mark.usefixtures("alone")


def test_a_folder_read_row_by_row(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    found = load_dataset(make_task(), folder=tmp_path)
    assert found.examples == (
        Example("a", "good film", 1, rationale=((0, 4),)),
        Example("b", "dull film", 0),
        Example("c", "fine, warm film", 1, rationale=((0, 4), (6, 10))),
    )
    assert (found.source, found.split, found.rationale) == ("folder", "test", "proxy")
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.checked is False  # nothing is pinned


def test_plain_file_and_other_split(tmp_path: Path) -> None:
    put(tmp_path, ROWS[:1], stem="learn")
    found = load_dataset(make_task(), split="train", folder=tmp_path, source="folder")
    assert [example.id for example in found.examples] == ["a"]


def test_checksums(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    good = hashlib.sha256(path.read_bytes()).hexdigest()
    pinned = {"name": "mini", "splits": {"test": "test"}, "sha256": {"test": good}}
    assert load_dataset(make_task(folder=pinned), folder=tmp_path).checked is True
    put(tmp_path, ROWS[:2], packed=True)
    bad = hashlib.sha256(path.read_bytes()).hexdigest()
    said = complaint(make_task(folder=pinned), folder=tmp_path)
    for part in (str(path), f"expected sha256 {good}", f"found {bad}", "--allow-changed-data"):
        assert part in said
    changed = load_dataset(make_task(folder=pinned), folder=tmp_path, allow_changed=True)
    assert (changed.checked, changed.sha256, len(changed.examples)) == (False, bad, 2)


def test_a_missing_file_names_it_and_says_where_to_get_it(tmp_path: Path) -> None:
    task = make_task(folder={"name": "mini", "splits": {"test": "test"}, "get": "ask the LDC"})
    path = tmp_path / "mini" / "test.jsonl.gz"
    assert sources(task, tmp_path)["folder"] == f"no file {path}; ask the LDC"
    put(tmp_path, ROWS)
    assert sources(task, tmp_path)["folder"] == "yes"

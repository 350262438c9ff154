"""Files of a data folder: read row by row, and checked against the sums that a task pins."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.types import Example
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.tasks import Task
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


def test_columns_of_the_task_file(tmp_path: Path) -> None:
    """Labels by name, by index or by `values`; a blank text is left out; dots read inside."""
    theirs = [
        {"sentence": {"raw": "good film"}, "gold": "pos", "why": [[0, 4]]},
        {"sentence": {"raw": "dull film"}, "gold": "neg"},
        {"sentence": {"raw": "some film"}, "gold": "neutral"},
        {"sentence": {"raw": " "}, "gold": "pos"},
    ]
    put(tmp_path, theirs)
    columns = {"text": "sentence.raw", "label": "gold", "rationale": "why"}
    found = load_dataset(mapped(columns, values=["neg", "pos"]), folder=tmp_path)
    assert found.examples == (
        Example("mini-test-0", "good film", 1, rationale=((0, 4),)),
        Example("mini-test-1", "dull film", 0),
    )
    put(tmp_path, [{"no": 7, "text": "a", "gold": "yes"}, {"no": 8, "text": "b", "gold": 0}])
    found = load_dataset(mapped({"id": "no", "label": "gold"}), folder=tmp_path)
    assert found.examples == (Example("mini-test-7", "a", 1), Example("mini-test-8", "b", 0))


def test_faults_of_mapped_rows_name_the_line(tmp_path: Path) -> None:
    path = put(tmp_path, [{"sentence": "a", "gold": 1}, {"sentence": "b", "golden": 1}])
    assert complaint(mapped({"text": "sentence", "label": "gold"}), folder=tmp_path) == (
        f"{path}, line 2 has no column 'gold', it has sentence, golden; "
        "fix folder.columns of task mini"
    )
    said = complaint(mapped({"text": "sentence.raw", "label": "gold"}), folder=tmp_path)
    assert f"{path}, line 1: field 'text': expected a text that is not blank, found None" in said
    put(tmp_path, ["[1]"])
    assert "line 1: expected a JSON object" in complaint(mapped({"id": "no"}), folder=tmp_path)


def test_a_derived_split_is_cut_by_the_file_s_own_field(tmp_path: Path) -> None:
    theirs = [{"doc": f"d{i}", "sentence": f"film {i}", "gold": i % 2} for i in range(40)]
    put(tmp_path, theirs)
    derive = {"test": {"by": "doc", "shares": {"test": 50, "dev": 50}}}
    splits = {"test": "test", "dev": "test"}
    task = mapped({"text": "sentence", "label": "gold"}, derive=derive, splits=splits)
    texts = set()
    for split in ("test", "dev"):
        found = load_dataset(task, folder=tmp_path, split=split)
        assert found.examples[0].id == f"mini-{split}-0"
        texts |= {example.text for example in found.examples}
    assert len(texts) == 40


def mapped(columns: dict[str, str], **table: Any) -> Task:
    folder = {"name": "mini", "splits": {"test": "test"}, "columns": columns}
    return make_task(folder=folder | table, hub=None)

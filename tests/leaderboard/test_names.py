"""Labels of explainers and ids of tables: short, telling, and one for one thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from faithbench.leaderboard.names import (
    is_own_model,
    label_by_file,
    labels_of,
    table_ids,
    table_titles,
)
from faithbench.records.conditions import Conditions
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from tests.support.stores import store


def stored(folder: Path, stem: str, **settings: Any) -> StoredRecord:
    path = store(folder, stem, {"aopc": [0.1]}, settings=settings)
    return StoredRecord(path, read(path))


def test_the_file_name_tells_what_is_not_the_default(tmp_path: Path) -> None:
    first = stored(tmp_path, "lime-samples=50-11111111", samples=50, width=0.25, on=True)
    assert label_by_file(first.record, first.path.stem) == "lime:samples=50"
    both = stored(tmp_path, "lime-width=0.25-on=true-11111111", samples=50, width=0.25, on=True)
    assert label_by_file(both.record, both.path.stem) == "lime:width=0.25,on=true"
    # A key with an underscore is written with a dash; 5 is not 50.
    slugged = stored(tmp_path, "lime-max-steps=50-11111111", max_steps=50, steps=5)
    assert label_by_file(slugged.record, slugged.path.stem) == "lime:max_steps=50"
    assert label_by_file(first.record, "renamed") == "lime"


def test_equal_settings_share_a_label_and_others_do_not(tmp_path: Path) -> None:
    records = [
        stored(tmp_path / "a", "lime-11111111", samples=50),
        stored(tmp_path / "b", "lime-22222222", samples=50),
        stored(tmp_path / "c", "lime-33333333", samples=60),
        stored(tmp_path / "d", "random-44444444"),
    ]
    labels = labels_of([(record, None) for record in records])
    assert labels == ["lime:samples=50", "lime:samples=50", "lime:samples=60", "random"]


def test_labels_that_meet_are_told_apart(tmp_path: Path) -> None:
    records = [
        stored(tmp_path / "a", "lime-11111111", samples=50),
        stored(tmp_path / "b", "lime-22222222", samples=60),
        stored(tmp_path / "c", "lime-samples=50-33333333", samples=50, width=1),
    ]
    labels = labels_of([(record, None) for record in records])
    assert len(set(labels)) == 3 and labels[1] == "lime:samples=60"
    assert labels[0].startswith("lime:samples=50 (") and labels[2].startswith("lime:samples=50 (")


REAL = Conditions(
    task="sst2", task_version=1, source="folder", data_sha256="a" * 64, split="test",
    ids="1" * 64, model_sha256="c" * 64, dtype="float32", protocol=1, operator="mask",
    erasure_token="[MASK]", long="truncate", model="bundled:sst2", n=200,
)  # fmt: skip
BUNDLED = replace(REAL, source="bundled", data_sha256="b" * 64, ids="2" * 64, n=60)


def test_one_table_has_the_name_of_its_task() -> None:
    assert table_ids([REAL]) == ["sst2"]


def test_other_data_are_told_by_their_source_alone() -> None:
    assert table_ids([REAL, BUNDLED]) == ["sst2-folder", "sst2-bundled"]
    assert table_titles([REAL, BUNDLED])[1].endswith("sentences; data source bundled")


def test_tables_of_one_source_are_told_apart_by_more() -> None:
    more = replace(BUNDLED, ids="3" * 64, n=140)
    assert table_ids([REAL, BUNDLED, more]) == [
        "sst2-folder", "sst2-bundled-60-222222", "sst2-bundled-140-333333",
    ]  # fmt: skip
    again = replace(BUNDLED, operator="delete")
    assert table_ids([REAL, BUNDLED, again]) == [
        "sst2-folder", "sst2-bundled", "sst2-bundled-delete",
    ]  # fmt: skip


def test_ids_are_short_and_differ_in_more_than_capitals() -> None:
    upper = replace(REAL, erasure_token="[mask]")
    ids = table_ids([REAL, upper])
    # Slugs of both tokens differ in capitals alone, which some file systems do not tell apart.
    assert [name[:10] for name in ids] == ["sst2-MASK-", "sst2-mask-"]
    assert len({name.lower() for name in ids}) == 2 and all(len(name) == 18 for name in ids)
    long = [replace(REAL, split="x" * 90), replace(REAL, split="x" * 90 + "y")]
    assert [len(name) for name in table_ids(long)] == [80, 80]
    assert len(set(table_ids(long))) == 2


def test_a_studys_models_do_not_rename_the_table_of_the_tasks_own() -> None:
    studied = replace(REAL, model_sha256="d" * 64, model="sst2-bilstm-softmax-seed0")
    ids = table_ids([REAL, studied])
    assert ids == ["sst2", "sst2-sst2-bilstm-softmax-seed0-dddddd"]
    own, other = table_titles([REAL, studied])
    assert "model" not in own and other.endswith("sst2-bilstm-softmax-seed0, dddddd")
    assert is_own_model("sst2", "bundled:sst2") and not is_own_model("sst2", "net")
    assert not is_own_model("no-such-task", "bundled:sst2")

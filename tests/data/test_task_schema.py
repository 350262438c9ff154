"""Tables of a task file: what they say of themselves, and how a file is cut into splits."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from faithbench.data.task_schema import (
    TABLES,
    BundledTable,
    FolderTable,
    HubTable,
    SplitByDigest,
    source_names,
)
from tests.support.builders import REVISION, make_task


def hub_table(**changes: object) -> HubTable:
    given = {
        "dataset": "owner/mini",
        "revision": REVISION,
        "splits": {"test": "validation"},
        "columns": {"text": "sentence", "label": "label"},
    }
    return HubTable.model_validate(given | changes)


def test_a_row_goes_where_the_digest_of_its_field_says() -> None:
    cut = SplitByDigest(by="article", shares={"train": 70, "dev": 10, "test": 20})
    value = "some article"
    number = int.from_bytes(hashlib.sha256(b"derive:some article").digest()[:8], "big") % 100
    expected = "train" if number < 70 else "dev" if number < 80 else "test"
    assert cut.split_of(value) == expected
    counts = Counter(cut.split_of(f"article {n}") for n in range(4000))
    assert counts["train"] == pytest.approx(2800, abs=120)
    assert counts["dev"] == pytest.approx(400, abs=80)
    cut.split_of("half a pair: \ud800")  # JSON can spell it, and it belongs somewhere too


def test_the_packed_file_is_taken_before_the_plain_one(tmp_path: Path) -> None:
    table = FolderTable(name="mini", splits={"test": "all"})
    packed, plain = tmp_path / "mini" / "all.jsonl.gz", tmp_path / "mini" / "all.jsonl"
    assert table.file(tmp_path, "test") == packed, "which a message then names"
    plain.parent.mkdir()
    plain.write_text("")
    assert table.file(tmp_path, "test") == plain
    packed.write_bytes(b"")
    assert table.file(tmp_path, "test") == packed


def test_tables_say_what_a_card_shows() -> None:
    folder = FolderTable(
        name="mini",
        splits={"test": "all", "dev": "all"},
        derive={"all": SplitByDigest(by="id", shares={"test": 40, "dev": 60})},
        get="ask",
    )
    assert list(folder.facts()) == [
        ("folder", "mini"),
        ("cut", "all by id: test 40%, dev 60%"),
        ("checksums", "none: not pinned"),
        ("get", "ask"),
    ]
    assert list(hub_table(config="c", revision=None).facts()) == [
        ("dataset", "owner/mini, c"),
        ("revision", "main (unpinned)"),
        ("columns", "text = sentence, label = label"),
    ]
    headed = FolderTable(name="mini", splits={"test": "all"}, text_from="body_start")
    assert list(headed.facts())[-1] == ("text", "from body_start on")
    assert list(BundledTable(splits={"test": "test.jsonl"}).facts()) == []


def test_a_folder_whose_rows_are_not_ours_is_mapped() -> None:
    splits = {"test": "all"}
    assert not FolderTable(name="mini", splits=splits).maps
    assert FolderTable(name="mini", splits=splits, text_from="body_start").maps
    assert FolderTable(name="mini", splits=splits, values=("a", "b")).maps


def test_a_layout_has_an_older_name() -> None:
    columns = {"text": "a", "text_b": "b", "answers": "c"}
    for key in ("layout", "form"):
        assert hub_table(columns=columns, **{key: "squad"}).layout == "squad"
    assert hub_table().layout == "plain"


def test_typed_labels_ask_for_types() -> None:
    columns = {"text": "a", "label": "b", "rationale": "c"}
    assert hub_table(columns=columns, layout="typed", values=["X"]).values == ("X",)
    with pytest.raises(ValueError, match="asks for the types it looks for, in values"):
        hub_table(columns=columns, layout="typed")


def test_the_tables_of_a_task_are_in_the_order_of_auto() -> None:
    task = make_task(bundled={"splits": {"test": "test.jsonl"}})
    assert tuple(task.tables) == tuple(TABLES) == ("folder", "hub", "bundled")
    assert source_names()[:3] == tuple(TABLES)
    assert tuple(make_task().tables) == ("folder", "hub")

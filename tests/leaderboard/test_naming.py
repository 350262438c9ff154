"""Ids and titles of tables: no more than it takes to tell them apart."""

from __future__ import annotations

from dataclasses import replace

from faithbench.leaderboard.naming import table_ids, table_titles
from faithbench.terms import Terms

REAL = Terms(
    task="sst2", task_version=1, source="folder", data_sha256="a" * 64, split="test",
    ids="1" * 64, weights_sha256="c" * 64, dtype="float32", protocol=1, operator="mask",
    erasure_token="[MASK]", long="truncate", model="bundled:sst2", n=200,
)  # fmt: skip
BUNDLED = replace(REAL, source="bundled", data_sha256="b" * 64, ids="2" * 64, n=60)


def test_one_table_has_the_task_s_name() -> None:
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
        "sst2-folder", "sst2-bundled-mask", "sst2-bundled-delete",
    ]  # fmt: skip

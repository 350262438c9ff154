"""Records sorted into groups: like with like, seeds pooled, and nothing twice."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.gather import (
    Group,
    find_records,
    groups_in,
    parts_of,
    read_values,
    records_digest,
    shown_paths,
)
from faithbench.leaderboard.pages.table_page import table_page
from faithbench.records.entrants import Entrant
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from tests.support.records import forge_record
from tests.support.stores import accepted, change_rows, store

VALUES = {"aopc": [0.1, 0.2, 0.3]}
NONE = ()


def groups_of(folder: Path) -> list[Group]:
    return [group for part in parts_of(find_records(folder, NONE)) for group in groups_in(part)]


def test_the_same_record_twice_is_refused(tmp_path: Path) -> None:
    first = store(tmp_path / "a", "lime-11111111", VALUES, seeds=(0, 1))
    second = store(tmp_path / "b", "lime-22222222", VALUES, seeds=(1, 2))
    with pytest.raises(FaithbenchError) as caught:
        make_board(tmp_path, NONE)
    assert str(caught.value) == (
        f"two records of lime under the same conditions share seed 1: {first} and {second}; "
        "keep one of them"
    )


def test_seeds_are_pooled_and_versions_of_the_explainer_not(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": [0.0, 0.0, 0.3]})
    store(tmp_path, "lime-22222222", {"aopc": [0.2, 0.0, 0.5]}, seeds=(1,))
    (table,) = make_board(tmp_path, NONE).tables
    (row,) = table.entrants
    assert row.seeds == (0, 1)
    assert row.records == ("records/lime-11111111.json", "records/lime-22222222.json")
    # (0.1 + 0 + 0.4) / 3
    assert table.columns[0].cells["lime"].mean == pytest.approx(0.5 / 3, abs=1e-9)
    store(tmp_path, "lime-22222222", VALUES, seeds=(1,), explainer={"version": "9"})
    with pytest.raises(FaithbenchError, match="under different seeds differ in the explainer's v"):
        make_board(tmp_path, NONE)


def test_every_seed_counts_once_however_many_a_record_has(tmp_path: Path) -> None:
    first = store(tmp_path, "lime-11111111", {"aopc": [0.3, 0.5, None, 0.1]}, seeds=(0, 1))
    second = store(tmp_path, "lime-22222222", {"aopc": [0.6, None, None, 0.7]}, seeds=(2,))
    # Example e1 has a value under one seed of two, e2 under none, and e3 keeps a mean alone.
    by_seed = {"e0": (0.2, 0.4), "e1": (0.5, None), "e2": (None, None)}
    change_rows(first, {key: {"by_seed": {"aopc": values}} for key, values in by_seed.items()})
    (group,) = groups_of(tmp_path)
    (entry,) = group.entries
    assert entry.record_values[0].by_seed["aopc"].shape == (2, 4)
    values = entry.values("aopc")
    # (0.2 + 0.4 + 0.6) / 3, 0.5 alone, nothing, and (0.1 + 0.7) / 2.
    assert values[[0, 1, 3]].tolist() == [0.4, 0.5, 0.4] and np.isnan(values[2])
    # A comparison pools the rows themselves, and agrees to the last bit.
    records = tuple(StoredRecord(path, read(path)) for path in (first, second))
    pooled = Entrant("lime", records).values("aopc", entry.record_values[0].ids)
    assert pooled == [None if np.isnan(value) else value for value in values.tolist()]


def test_values_are_in_the_order_of_sorted_ids(tmp_path: Path) -> None:
    path = store(tmp_path, "lime-11111111", {"aopc": [0.1, None, 0.3]}, ids=["c", "a", "b"])
    change_rows(path, {"a": {"curve": tuple(0.1 * k for k in range(9))}})
    values = read_values(StoredRecord(path, read(path)))
    assert values.ids == ("a", "b", "c") and values.by_seed == {}
    assert values.values["aopc"][1:].tolist() == [0.3, 0.1] and np.isnan(values.values["aopc"][0])
    assert values.seed_values("aopc").shape == (1, 3)
    # Only one example has a curve, and the curve begins with the whole text.
    assert values.curve[0] == pytest.approx(1 / 3, abs=1e-9) and len(values.curve) == 10
    assert values.curve[9] == pytest.approx(0.8)


def test_the_digest_is_of_records_and_their_paths(tmp_path: Path) -> None:
    store(tmp_path / "one", "lime-11111111", VALUES)
    store(tmp_path / "two", "lime-11111111", VALUES)
    store(tmp_path / "three" / "inside", "lime-11111111", VALUES)
    digests = [records_digest(find_records(tmp_path / name, NONE)) for name in ("one", "two")]
    assert digests[0] == digests[1] and len(digests[0]) == 64
    assert records_digest(find_records(tmp_path / "three", NONE)) != digests[0]


def test_parts_share_no_conditions_and_hold_all_records(tmp_path: Path) -> None:
    store(tmp_path / "a", "lime-11111111", VALUES)
    store(tmp_path / "a", "random-11111111", VALUES, ids=["x", "y", "z"])
    store(tmp_path / "b", "lime-11111111", VALUES, task={"source": "hub"})
    parts = parts_of(find_records(tmp_path, NONE))
    assert [[label for _, label in part] for part in parts] == [["lime", "random"], ["lime"]]
    # Other examples show in the rows alone: the first part becomes two groups.
    assert [len(groups_in(part)) for part in parts] == [2, 1]


def test_submissions_have_their_own_names(tmp_path: Path) -> None:
    store(tmp_path / "records", "lime-11111111", VALUES)
    entries = tmp_path / "submissions"
    store(entries / "mine" / "records" / "sst2", "lime-11111111", VALUES)
    store(entries / "lime" / "records", "gradient-11111111", VALUES)
    for steps in (1, 2):
        stem = f"deep-steps={steps}-1111111{steps}"
        store(entries / "two" / "records", stem, VALUES, settings={"steps": steps})
    (table,) = make_board(tmp_path / "records", accepted(entries)).tables
    assert {row.label: row.submission for row in table.entrants} == {
        "lime": None,
        "lime (submitted)": "lime",
        "mine": "mine",
        "two: deep:steps=1": "two",
        "two: deep:steps=2": "two",
    }
    mine = next(row for row in table.entrants if row.label == "mine")
    assert mine.records == ("submissions/mine/records/sst2/lime-11111111.json",)
    assert {row.family for row in table.entrants if row.submission} == {"submission"}
    assert "| [mine](../../submissions/mine) |" in table_page(table)


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES)
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "x.json").write_text("{")
    assert [published.shown_path for published in find_records(tmp_path, NONE)] == [
        "records/lime-11111111.json"
    ]


def test_no_records_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"no record in .*; make some with `faithbench run`"):
        find_records(tmp_path, NONE)


def test_a_records_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    store(tmp_path / "submissions" / "x" / "records", "lime-11111111", VALUES)
    with pytest.raises(FaithbenchError, match=r"no records folder .*a; check --records, or make"):
        find_records(tmp_path / "a", accepted(tmp_path / "submissions"))
    (tmp_path / "a").mkdir()
    assert shown_paths(tmp_path / "a", accepted(tmp_path / "submissions")) == [
        "submissions/x/records/lime-11111111.json"
    ]


def test_rows_without_a_metric_of_the_record_are_refused(tmp_path: Path) -> None:
    path = store(tmp_path, "lime-11111111", VALUES)
    forge_record(path, json.loads(path.read_text().replace('"aopc"', '"other"')))
    with pytest.raises(FaithbenchError, match="holds metric 'other', which some of its rows do"):
        make_board(tmp_path, NONE)


@pytest.mark.parametrize(
    ("values", "parts", "message"),
    [
        ([5.0, 0.2], {}, "has a aopc of 5, where -1 to 1 is possible"),
        ([0.1, 0.2], {"seeds": ()}, "names no seed"),
        ([0.1, 0.2], {"task": {"n": 0}}, "says n = 0 and has 2 examples"),
    ],
)
def test_what_no_run_can_have_written_is_refused(
    tmp_path: Path, values: list[float], parts: dict[str, Any], message: str
) -> None:
    store(tmp_path, "lime-11111111", {"aopc": values}, **parts)
    with pytest.raises(FaithbenchError, match=f"record .*lime-11111111.json {message}"):
        make_board(tmp_path, NONE)


def test_unbounded_values_have_a_bound_too(tmp_path: Path) -> None:
    path = store(tmp_path, "lime-11111111", {"lodds": [0.1, 0.2]})
    change_rows(path, {"e0": {"values": {"lodds": -1e308}}})
    with pytest.raises(FaithbenchError, match=r"has a lodds of -1e\+308, where -1e\+06 to 1e\+06"):
        make_board(tmp_path, NONE)


def test_a_pipe_or_a_link_in_the_place_of_a_record_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path / "a", "lime-11111111", VALUES)
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / "x.json")
    with pytest.raises(FaithbenchError, match=r"b/x\.json is not a plain file; remove it"):
        make_board(tmp_path / "b", NONE)
    (tmp_path / "b" / "x.json").unlink()
    (tmp_path / "b" / "x.json").symlink_to(path)
    with pytest.raises(FaithbenchError, match="is not a plain file"):
        make_board(tmp_path / "b", NONE)

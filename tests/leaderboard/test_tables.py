"""Tables of a board: one for each set of conditions, in order, with names that tell them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.leaderboard.board import Table
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.gather import find_records, groups_in, parts_of
from faithbench.leaderboard.tables import content_of, tables_of
from tests.support.stores import change_rows, store

VALUES = {"aopc": [0.1, 0.2, 0.3]}
NONE = ()

OTHER_CONDITIONS: dict[str, dict[str, Any]] = {
    "sst2-v2": {"task": {"version": 2}},
    "sst2-hub": {"task": {"source": "hub"}},
    "sst2-data-abab": {"task": {"data_sha256": "ab" * 32}},
    "sst2-dev": {"task": {"split": "dev"}},
    "sst2-3-": {"ids": ["x", "y", "z"]},
    "sst2-tiny-cdcd": {"model": {"weights_sha256": "cd" * 32}},
    "sst2-float16": {"model": {"dtype": "float16"}},
    "sst2-protocol-2": {"protocol": {"version": 2}},
    "sst2-pad": {"protocol": {"operator": "pad"}},
    "sst2-unk": {"protocol": {"erasure_token": "<unk>"}},
    "sst2-window": {"protocol": {"long": "window"}},
}


def one_table(folder: Path) -> Table:
    (table,) = make_board(folder, NONE).tables
    return table


@pytest.mark.parametrize(("name", "change"), OTHER_CONDITIONS.items())
def test_other_conditions_are_another_table(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    store(tmp_path, "lime-11111111", VALUES)
    store(tmp_path, "random-22222222", VALUES)
    store(tmp_path, "gradient-33333333", VALUES, **change)
    tables = make_board(tmp_path, NONE).tables
    assert sorted([row.label for row in table.entrants] for table in tables) == [
        ["gradient"],
        ["lime", "random"],
    ]
    odd = next(table for table in tables if len(table.entrants) == 1)
    assert odd.id.startswith(name) and len({table.id for table in tables}) == 2
    assert len({table.title for table in tables}) == 2


def test_one_table_of_a_task_has_its_plain_name(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES, model={"name": "a"})
    store(tmp_path, "random-22222222", VALUES, model={"name": "b"})
    table = one_table(tmp_path)
    assert (table.id, table.n, table.source) == ("sst2", 3, "bundled")
    assert table.title == "SST-2: sentiment of film-review sentences"


def test_an_unknown_task_is_called_by_its_name(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES, task={"name": "../../evil.toml"})
    table = one_table(tmp_path)
    assert table.id == "evil.toml" and table.title == "../../evil.toml"


def test_tables_are_ordered_by_task_with_bundled_data_last(tmp_path: Path) -> None:
    for task, source in (("sst2", "bundled"), ("sst2", "hub"), ("sst2", "folder"), ("agnews", "")):
        changes = {"name": task, "source": source or "bundled"}
        store(tmp_path / task / (source or "x"), "lime-11111111", VALUES, task=changes)
    parts = parts_of(find_records(tmp_path, NONE))
    contents = [content_of(group) for part in parts for group in groups_in(part)]
    ids = ["agnews", "sst2-folder", "sst2-hub", "sst2-bundled"]
    assert [table.id for table in tables_of(contents)] == ids
    assert [table.id for table in tables_of(reversed(contents))] == ids


def test_a_row_tells_the_explainer_and_its_cost(tmp_path: Path) -> None:
    store(
        tmp_path, "lime-samples=50-11111111", VALUES, settings={"samples": 50}, seeds=(2, 0),
        cost={"forwards_per_example": 50.5, "forward_equivalents_per_example": 50.5},
        timing={"seconds_median": 0.123456, "seconds_ci95": (0.1, 0.2), "alone": 3,
                "peak_memory_bytes": 1000},
    )  # fmt: skip
    for name in ("captum:Saliency", "mine"):
        store(tmp_path, f"{name[-4:]}-22222222", VALUES, explainer={"name": name})
    captum, lime, mine = one_table(tmp_path).entrants
    assert (captum.family, lime.family, mine.family) == ("captum", "perturbation", "plugin")
    assert (lime.name, lime.settings, lime.seeds) == ("lime", {"samples": 50}, (0, 2))
    assert (lime.forwards, lime.forward_equivalents) == (50.5, 50.5)
    assert (lime.seconds, lime.seconds_ci95) == (0.1235, (0.1, 0.2))
    assert lime.peak_memory_bytes == 1000 and lime.records == (
        "records/lime-samples=50-11111111.json",
    )
    assert not lime.is_human


def test_a_curve_is_the_mean_over_all_seeds(tmp_path: Path) -> None:
    for seeds, at, stem in (((0, 1), 0.3, "lime-11111111"), ((2,), 0.6, "lime-22222222")):
        path = store(tmp_path, stem, {"aopc": [0.1]}, seeds=seeds)
        change_rows(path, {"e0": {"curve": (at,) * 9, "probability": 0.9}})
    (row,) = one_table(tmp_path).entrants
    # Two seeds at 0.3 and one at 0.6; all begin with the probability of the whole text.
    assert row.curve == (0.9, *[0.4] * 9)
    store(tmp_path, "lime-33333333", {"aopc": [0.1]}, seeds=(3,))
    (row,) = one_table(tmp_path).entrants
    assert row.curve == (), "one record without a curve"

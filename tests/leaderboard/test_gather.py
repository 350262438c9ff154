"""Records sorted into tables: like with like, and nothing twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard import build
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.gather import find_records
from faithbench.leaderboard.pages.table_page import table_page
from tests.support.stores import store

VALUES = {"aopc": [0.1, 0.2, 0.3]}
NONE = Path("no-such-folder")

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


@pytest.mark.parametrize(("name", "change"), OTHER_CONDITIONS.items())
def test_other_conditions_are_another_table(
    tmp_path: Path, name: str, change: dict[str, Any]
) -> None:
    store(tmp_path, "lime-11111111", VALUES)
    store(tmp_path, "random-22222222", VALUES)
    store(tmp_path, "gradient-33333333", VALUES, **change)
    tables = make_board(tmp_path, NONE).tables
    assert sorted([e.label for e in t.entrants] for t in tables) == [
        ["gradient"],
        ["lime", "random"],
    ]
    odd = next(table for table in tables if len(table.entrants) == 1)
    assert odd.id.startswith(name) and len({t.id for t in tables}) == 2
    assert len({table.title for table in tables}) == 2


def test_one_table_of_a_task_has_its_plain_name(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES, model={"name": "a"})
    store(tmp_path, "random-22222222", VALUES, model={"name": "b"})
    (table,) = make_board(tmp_path, NONE).tables
    assert (table.id, table.n, table.source) == ("sst2", 3, "bundled")
    assert table.title == "SST-2: sentiment of film-review sentences"


def test_an_unknown_task_is_called_by_its_name(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES, task={"name": "../../evil.toml"})
    (table,) = make_board(tmp_path, NONE).tables
    assert table.id == "evil.toml" and table.title == "../../evil.toml"


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
    (entrant,) = table.entrants
    assert entrant.seeds == (0, 1)
    assert entrant.records == ("records/lime-11111111.json", "records/lime-22222222.json")
    # (0.1 + 0 + 0.4) / 3
    assert table.columns[0].cells["lime"].mean == pytest.approx(0.5 / 3, abs=1e-9)
    store(tmp_path, "lime-22222222", VALUES, seeds=(1,), explainer={"version": "9"})
    with pytest.raises(FaithbenchError, match="under different seeds differ in the explainer's v"):
        make_board(tmp_path, NONE)


def test_submissions_have_their_own_names(tmp_path: Path) -> None:
    store(tmp_path / "records", "lime-11111111", VALUES)
    entries = tmp_path / "submissions"
    store(entries / "mine" / "records" / "sst2", "lime-11111111", VALUES)
    store(entries / "lime" / "records", "gradient-11111111", VALUES)
    for steps in (1, 2):
        stem = f"deep-steps={steps}-1111111{steps}"
        store(entries / "two" / "records", stem, VALUES, settings={"steps": steps})
    (table,) = make_board(tmp_path / "records", entries).tables
    assert {e.label: e.submission for e in table.entrants} == {
        "lime": None,
        "lime (submitted)": "lime",
        "mine": "mine",
        "two: deep:steps=1": "two",
        "two: deep:steps=2": "two",
    }
    mine = next(e for e in table.entrants if e.label == "mine")
    assert mine.records == ("submissions/mine/records/sst2/lime-11111111.json",)
    assert {e.family for e in table.entrants if e.submission} == {"submission"}
    assert "| [mine](../../submissions/mine) |" in table_page(table)


def test_no_name_of_a_submission_can_leave_its_link(tmp_path: Path) -> None:
    store(tmp_path / "submissions" / "a) <b>[x](..\\" / "records", "lime-11111111", VALUES)
    (table,) = make_board(tmp_path / "records", tmp_path / "submissions").tables
    page = table_page(table)
    assert "](../../submissions/a%29%20%3Cb%3E%5Bx%5D%28..%5C) |" in page and "<b>" not in page


def test_hidden_folders_are_left_out(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES)
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "x.json").write_text("{")
    assert [found.shown_path for found in find_records(tmp_path, NONE)] == [
        "records/lime-11111111.json"
    ]


def test_many_records_are_read_by_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in ("sst2", "agnews", "imdb"):
        for place, name in enumerate(("lime", "random", "gradient")):
            values = {"aopc": [0.1 * place, 0.2, 0.3 + 0.1 * place]}
            store(tmp_path / task, f"{name}-1111111{place}", values, task={"name": task})
    alone = make_board(tmp_path, NONE)
    monkeypatch.setattr(build, "PARALLEL_FROM", 1)
    assert make_board(tmp_path, NONE) == alone
    assert [table.id for table in alone.tables] == ["agnews", "imdb", "sst2"]
    store(tmp_path / "sst2", "lime-22222222", VALUES)
    with pytest.raises(
        FaithbenchError, match="two records of lime under the same conditions share"
    ):
        make_board(tmp_path, NONE)


def test_no_records_says_how_to_make_some(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"no record in .*; make some with `faithbench run`"):
        find_records(tmp_path / "a", tmp_path / "b")


def test_rows_without_a_metric_of_the_record_are_refused(tmp_path: Path) -> None:
    path = store(tmp_path, "lime-11111111", VALUES)
    text = path.read_text().replace('"aopc"', '"other"')
    path.write_text(text)
    with pytest.raises(FaithbenchError, match="holds metric 'other', which some of its rows do"):
        make_board(tmp_path, NONE)

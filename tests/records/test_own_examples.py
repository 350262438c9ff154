"""The board's own examples: which they are, and records of submissions that are of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.records import own_examples as module
from faithbench.records.own_examples import (
    MeasuredOn,
    own_examples,
    unlike,
    without_strays,
)
from faithbench.records.passed import Accepted, Submitted
from faithbench.records.record import read
from tests.support.stores import store

FOLDER = "sst2-bundled/tiny-000000"
UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    """Two explainers on seven examples, and one on three."""
    records = tmp_path / "board"
    store(records / FOLDER, "lime-11111111", {"aopc": UP})
    store(records / FOLDER, "shap-11111111", {"aopc": UP})
    store(records / FOLDER, "gae-11111111", {"aopc": UP[:3]})
    store(records / FOLDER, "dev-11111111", {"aopc": UP[:2]}, task={"split": "dev"})
    return records


def measured_on(records: Path) -> MeasuredOn:
    return MeasuredOn.by(read(records / FOLDER / "lime-11111111.json"))


def test_most_records_say_which_they_are(board: Path) -> None:
    measured = measured_on(board)
    assert len(own_examples(board, measured)) == 7
    assert len(own_examples(board, measured._replace(split="dev"))) == 2
    assert own_examples(board, measured._replace(model="other")) == ()
    assert own_examples(board, measured._replace(source="folder")) == ()


def test_what_is_missing_and_too_many_is_named() -> None:
    assert unlike("abc", "cba") == "" and unlike("abc", "") == ""
    assert unlike("ax", "abcdef") == (
        "the board's table has 6 examples: 5 are missing (b, c, d, and 2 more) and 1 is too many "
        "(x)"
    )


def test_a_record_of_other_examples_is_left_out(board: Path, tmp_path: Path) -> None:
    mine = tmp_path / "submissions" / "my-x"
    store(mine / "records" / FOLDER, "short-22222222", {"aopc": UP[:4]})
    store(mine / "records" / FOLDER, "whole-22222222", {"aopc": UP})
    short, whole = (f"records/{FOLDER}/{name}-22222222.json" for name in ("short", "whole"))
    gone = f"records/{FOLDER}/gone.json"
    found = without_strays(board, Submitted((Accepted(mine, (gone, short, whole)),), ("before",)))
    assert found.accepted == (Accepted(mine, (gone, whole)),)
    assert found.left_out[0] == "before"
    assert found.left_out[1].startswith(
        f"submissions/my-x/{short}: left out, the board's table has 7 examples: 3 are missing ("
    )


def test_a_table_is_read_once_for_all_submissions(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[MeasuredOn] = []

    def counted(records: Path, measured: MeasuredOn) -> tuple[str, ...]:
        asked.append(measured)
        return own_examples(records, measured)

    monkeypatch.setattr(module, "own_examples", counted)
    accepted = []
    for name in ("my-x", "my-y", "my-z"):
        mine = tmp_path / "submissions" / name
        store(mine / "records" / FOLDER, "whole-22222222", {"aopc": UP})
        accepted.append(Accepted(mine, (f"records/{FOLDER}/whole-22222222.json",)))
    assert without_strays(board, Submitted(tuple(accepted), ())).accepted == tuple(accepted)
    assert asked == [measured_on(board)]

"""Which records of a former board are no more, and what a board that cannot be read counts as."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.leaderboard.former.vanished import (
    FormerBoard,
    Vanished,
    read_former,
    vanished_records,
)

LIME, OTHER = "records/sst2/tiny/lime-11111111.json", "records/sst2/tiny/random-22222222.json"
AGAIN = "records/sst2/tiny/lime-33333333.json"


@pytest.mark.parametrize(
    ("present", "count", "paths"),
    [
        ([LIME, OTHER], 0, ()),
        ([LIME, OTHER, AGAIN], 0, ()),
        ([AGAIN, OTHER], 0, ()),  # lime was run again: changed, not vanished
        ([LIME], 1, (OTHER,)),
        ([AGAIN], 1, (OTHER,)),
        ([], 2, (LIME, OTHER)),
        # As many as before, but not of the same explainer and folder.
        ([LIME, "records/imdb/tiny/random-22222222.json"], 1, (OTHER,)),
    ],
)
def test_what_has_vanished(present: list[str], count: int, paths: tuple[str, ...]) -> None:
    assert vanished_records(FormerBoard(2, (LIME, OTHER)), present) == Vanished(count, paths)


def test_one_new_record_stands_for_one_old_one() -> None:
    former = FormerBoard(2, (LIME, "records/sst2/tiny/lime-22222222.json"))
    vanished = vanished_records(former, [AGAIN])
    assert vanished == Vanished(1, ("records/sst2/tiny/lime-22222222.json",))


def test_a_number_alone_is_compared_by_number() -> None:
    assert vanished_records(FormerBoard(5), [LIME, OTHER]) == Vanished(3, ())
    assert Vanished(3, ()).lines == ["3 records: missing"]


def test_the_first_ten_are_named() -> None:
    paths = tuple(f"records/{number:02}.json" for number in range(12))
    lines = Vanished(12, paths).lines
    assert len(lines) == 11
    assert lines[0] == "records/00.json: missing" and lines[-1] == "and 2 more records"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, FormerBoard()),
        ("not json", FormerBoard(readable=False)),
        ("[1]", FormerBoard(readable=False)),
        ("{}", FormerBoard(readable=False)),
        (json.dumps({"records": 3}), FormerBoard(3)),
        (json.dumps({"records": 3, "tables": [{}]}), FormerBoard(3)),
        (
            json.dumps({"records": 1, "tables": [{"entrants": [{"records": [LIME]}]}]}),
            FormerBoard(1, (LIME,)),
        ),
    ],
)
def test_what_a_former_board_tells(tmp_path: Path, text: str | None, expected: FormerBoard) -> None:
    if text is not None:
        (tmp_path / "leaderboard.json").write_text(text)
    assert read_former(tmp_path) == expected

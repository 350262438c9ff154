"""The board's schema: what is published stays as it was."""

from __future__ import annotations

import json

from faithbench.leaderboard.board import Board, board_schema
from tests.support.boards import small_board
from tests.support.paths import ROOT


def test_the_schema_is_the_published_one() -> None:
    published = ROOT / "leaderboard" / "leaderboard.schema.json"
    assert board_schema() == published.read_text(encoding="utf-8")


def test_every_reference_of_the_schema_has_a_definition() -> None:
    text = board_schema()
    names = set(json.loads(text)["$defs"])
    assert {"Cell", "Entrant", "Shown"} < names and "Score" not in names
    for name in names:
        assert f'"#/$defs/{name}"' in text
    assert text.count('"#/$defs/') == sum(text.count(f'"#/$defs/{name}"') for name in names)


def test_a_board_reads_back_from_its_json() -> None:
    board = small_board()
    assert Board.model_validate_json(board.model_dump_json(), strict=True) == board

"""The flat table: a line per explainer and metric, the same in three formats."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.board import Board
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.pages.export import export_bytes, flat_lines, write_export
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    folder = tmp_path / "records"
    store(folder, "lime-11111111", {"aopc": UP, "lodds": UP})
    store(folder, "random-22222222", {"aopc": [0.0] * 7, "lodds": [None] * 7})
    return make_board(folder, ())


def test_a_line_has_the_numbers_of_the_board(board: Board) -> None:
    lines = {(str(line["explainer"]), str(line["metric"])): line for line in flat_lines(board)}
    aopc = lines["lime", "aopc"]
    assert (aopc["mean"], aopc["n"], aopc["skipped"]) == (pytest.approx(2.85 / 7), 7, 0)
    assert aopc["higher_is_better"] is True and aopc["table"] == "sst2"
    missing = lines["random", "lodds"]
    assert (missing["mean"], missing["n"], missing["skipped"]) == (None, 0, 7)


def test_three_formats_say_the_same(board: Board) -> None:
    lines = list(flat_lines(board))
    assert json.loads(export_bytes(board, "json")) == lines
    assert pq.read_table(io.BytesIO(export_bytes(board, "parquet"))).to_pylist() == lines
    read = list(csv.DictReader(io.StringIO(export_bytes(board, "csv").decode())))
    assert [{k: "" if v is None else str(v) for k, v in line.items()} for line in lines] == read


def test_the_name_of_the_file_tells_the_format(board: Board, tmp_path: Path) -> None:
    write_export(board, tmp_path / "new" / "board.json")
    assert (tmp_path / "new" / "board.json").read_bytes() == export_bytes(board, "json")
    with pytest.raises(FaithbenchError, match="no format named 'xlsx'"):
        write_export(board, tmp_path / "board.xlsx")

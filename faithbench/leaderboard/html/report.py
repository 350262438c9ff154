"""The board of a few records of one's own: one run, or the records of a comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file
from faithbench.leaderboard.board import Board
from faithbench.leaderboard.build import board_of
from faithbench.leaderboard.gather import PublishedRecord
from faithbench.leaderboard.html.page import render_page
from faithbench.records.record import read
from faithbench.records.store import StoredRecord


def board_of_files(paths: Sequence[Path]) -> Board:
    """Return the board of these records alone; pages show their file names, not their folders."""
    files = list(dict.fromkeys(paths))
    board = board_of([PublishedRecord(StoredRecord(p, read(p)), p.name, None) for p in files])
    # A ranking is over tables, and one run has one: its table has the places.
    return board.model_copy(update={"ranking": None, "pareto": ()})


def write_report(board: Board, path: Path, title: str) -> None:
    """Write a board as one HTML file that needs no network and no other file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, render_page(board, title, ranking=False).encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {path}: {reason(error)}; choose another file with --html"
        ) from error

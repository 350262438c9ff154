"""The leaderboard as one page of HTML."""

from __future__ import annotations

from html import escape

from faithbench.leaderboard.board import Board


def render_page(board: Board) -> str:
    """Return a page that names the tables."""
    names = "".join(f"<li>{escape(table.title)}</li>" for table in board.tables)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>faithbench</title>'
        f"<ul>{names}</ul></html>\n"
    )

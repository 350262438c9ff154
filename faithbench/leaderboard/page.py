"""The leaderboard as one page to look at: `index.html`."""

from __future__ import annotations

from faithbench.leaderboard.board import Board
from faithbench.leaderboard.chart_library import chart_library
from faithbench.leaderboard.compact import overview, table_data
from faithbench.leaderboard.document import asset, document

SCRIPTS = (
    "dom", "state", "controls", "charts", "diagram", "ranking", "cells", "results", "curves",
    "cost", "tests", "viewer", "main",
)  # fmt: skip
"""The page's own scripts, in the order in which they build on each other."""


def render_page(board: Board) -> str:
    """Return the whole page as HTML; the same board gives the same text."""
    own = "\n".join(asset(f"{name}.js") for name in SCRIPTS)
    tables = {f"table-{i}": table_data(table) for i, table in enumerate(board.tables)}
    return document(
        title="faithbench leaderboard",
        style=asset("base.css") + asset("page.css"),
        body=asset("page.html"),
        data={"board": overview(board), **tables},
        # The page's own script comes first: its tables need not wait for the charts.
        scripts=(own, chart_library()),
    )

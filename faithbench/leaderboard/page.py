"""The leaderboard as one page to look at: `index.html`."""

from __future__ import annotations

from faithbench.errors import FaithbenchError
from faithbench.leaderboard.board import Board
from faithbench.leaderboard.compact import overview, table_data
from faithbench.leaderboard.document import asset, document

SCRIPTS = (
    "dom", "state", "controls", "charts", "ranking", "results", "curves", "cost", "tests",
    "viewer", "main",
)  # fmt: skip
"""The page's own scripts, in the order in which they build on each other."""

_NOTICE = """/*! Vega, Vega-Lite and Vega-Embed: Copyright the University of Washington Interactive
Data Lab and contributors, BSD 3-Clause. With parts of D3: Copyright Mike Bostock, ISC. */
"""


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


def chart_library() -> str:
    """Return the script of Vega-Embed with all it needs; about two seconds, then remembered."""
    try:
        import vl_convert
    except ImportError as error:
        raise FaithbenchError(
            "the page's charts need vl-convert-python, which is not installed; "
            "run: pip install 'faithbench[page]'"
        ) from error
    # Vega-Embed, not Vega alone: it brings the interpreter that does without eval.
    ready = "window.vegaEmbed = vegaEmbed; window.dispatchEvent(new Event('charts-ready'));"
    bundle: str = vl_convert.javascript_bundle(ready)
    return _NOTICE + bundle

"""Tables for papers: one tabular per family, with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from faithbench.core.text import plain
from faithbench.leaderboard.board import Column, Table
from faithbench.leaderboard.pages.formatting import (
    MADE,
    about,
    heading,
    labels_in,
    mean_text,
    shelved,
)
from faithbench.metrics.kinds import FAMILIES

# Stand-ins for commands, which tabulate would escape with the rest. They are private-use
# characters, which `plain` takes out of all text that comes from data.
_OPEN, _CLOSE, _LETTERS, _END = "\ue000", "\ue001", "\ue002", "\ue003"
_COMMANDS = {
    _OPEN: r"\textbf{",
    _CLOSE: "}",
    _LETTERS: r"\textsuperscript{",
    _END: "}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}


def latex(table: Table) -> str:
    """Return the tabulars of a table; needs the package booktabs."""
    parts = [f"% {MADE}", f"% {plain(table.title)}", f"% {plain(about(table))}"]
    for family in FAMILIES:
        columns = [column for column in table.columns if column.family == family]
        if columns:
            proxy = " (proxy rationales)" if any(column.proxy for column in columns) else ""
            parts += [f"\n% {family}{proxy}", _tabular(table, columns)]
    return "\n".join(parts) + "\n"


def _tabular(table: Table, columns: Sequence[Column]) -> str:
    rows = [
        [plain(label), *(_score_text(column, label) for column in columns)]
        for label in shelved(table, labels_in(columns))
    ]
    headers = ["explainer", *(plain(heading(column)) for column in columns)]
    align = ("left", *("right" for _ in columns))
    text = tabulate(rows, headers, tablefmt="latex_booktabs", disable_numparse=True, colalign=align)
    for mark, command in _COMMANDS.items():
        text = text.replace(mark, command)
    return text


def _score_text(column: Column, label: str) -> str:
    score = column.cells.get(label)
    if score is None or score.mean is None:
        return "--"
    mean = mean_text(column, score)
    text = f"{_OPEN}{mean}{_CLOSE}" if score.best or score.tie else mean
    return text + (f"{_LETTERS}{score.letters}{_END}" if score.letters else "")

"""One table of the board as a page of markdown, with all that it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from faithbench.leaderboard.board import Column, Score, Table
from faithbench.leaderboard.pages.formatting import (
    MADE,
    about,
    heading,
    interval_of,
    markdown,
    number,
    tested,
    value_of,
)
from faithbench.metrics.registry import FAMILIES

BUNDLED = (
    "**bundled**: a small sample that ships with faithbench. It shows that the task runs; it does "
    "not rank explainers, and does not count in any ranking where real data are there."
)
TESTS = (
    "A cell is the mean over examples, its bootstrap 95% interval, and letters: explainers that "
    "share a letter are not significantly different. Every pair of a column is tested on the same "
    "examples (Wilcoxon signed-rank; exact McNemar where all values are 0 or 1), p after "
    "Holm-Bonferroni over the pairs of the column, alpha .05. The best mean and all that are "
    "not significantly worse are bold."
)


def task_page(table: Table) -> str:
    """Return the page of a table."""
    return "\n".join(_lines(table)) + "\n"


def grid(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    """Lay out a table of markdown, numbers to the right; the cells are escaped already."""
    rule = ["---", *("---:" for _ in headers[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headers, rule, *rows))


def bold(text: str, cell: Score) -> str:
    """Mark the best and those tied with it."""
    return f"**{text}**" if (cell.best or cell.tie) and cell.mean is not None else text


def _lines(table: Table) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield f"# {markdown(table.title)}\n"
    if table.source == "bundled":
        yield f"{BUNDLED}\n"
    yield f"{markdown(about(table))}.\n"
    yield f"{TESTS}\n"
    if any(entrant.name == "human" for entrant in table.entrants):
        yield "`human` is the rationale that people marked: a yardstick, not tested nor ranked.\n"
    yield "[Overview](../README.md) · [all data](../leaderboard.json)\n"
    for family in FAMILIES:
        columns = [column for column in table.columns if column.family == family]
        if columns:
            yield f"## {family.capitalize()}\n"
            yield from _family(columns)
    yield "## Explainers\n"
    yield _explainers(table)


def _family(columns: Sequence[Column]) -> Iterator[str]:
    if any(column.proxy for column in columns):
        yield "**proxy**: agreement with rationales that no person marked.\n"
    if columns[0].family == "speed":
        yield (
            "Per example; seconds and memory of each explainer alone, comparable within one "
            "machine only; passes through the network are counted, and a backward pass counts as "
            "two forward ones. No tests; the least is bold.\n"
        )
    labels = list(dict.fromkeys(label for column in columns for label in column.cells))
    rows = [[markdown(label), *(_cell(column, label) for column in columns)] for label in labels]
    if columns[0].family != "speed":
        rows.append(["pairs tested", *(str(tested(column)) for column in columns)])
    yield grid(rows, ["explainer", *(_heading(column) for column in columns)]) + "\n"


def _heading(column: Column) -> str:
    return markdown(heading(column))


def _cell(column: Column, label: str) -> str:
    cell = column.cells.get(label)
    if cell is None or (cell.mean is None and not cell.skipped):
        return "-"
    skipped = f"({cell.skipped} skipped)" if cell.skipped else ""
    parts = [bold(value_of(column, cell), cell), interval_of(column, cell), cell.letters, skipped]
    return " ".join(part for part in parts if part)


def _explainers(table: Table) -> str:
    rows = [
        [
            markdown(entrant.label),
            markdown(entrant.family),
            markdown(f"{entrant.package} {entrant.version}"),
            markdown(", ".join(f"{k}={v}" for k, v in sorted(entrant.settings.items()))) or "-",
            ", ".join(map(str, entrant.seeds)),
            _folder(entrant.submission),
            number(entrant.curve[5]) if entrant.curve else "-",
        ]
        for entrant in table.entrants
    ]
    headers = ["explainer", "family", "package", "settings", "seeds", "submission", "f at 50%"]
    note = "\n\n`f at 50%` is the mean probability of the prediction with half of the text erased."
    return grid(rows, headers) + note


def _folder(submission: str | None) -> str:
    """Link to the folder of a submission, from a page in `leaderboard/tasks/`."""
    if submission is None:
        return "-"
    return f"[{markdown(submission)}](../../submissions/{quote(submission, safe='')})"

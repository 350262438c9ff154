"""One table of the board as a page of markdown, with all its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from faithbench.leaderboard.board import Column, Table
from faithbench.leaderboard.pages.formatting import (
    MADE,
    about,
    bold,
    grid,
    heading,
    interval_text,
    labels_in,
    markdown,
    mean_text,
    number,
    pairs_tested,
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


def table_page(table: Table) -> str:
    """Return the page of a table."""
    return "\n".join(_page_lines(table)) + "\n"


def _page_lines(table: Table) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield f"# {markdown(table.title)}\n"
    if table.source == "bundled":
        yield f"{BUNDLED}\n"
    yield f"{markdown(about(table))}.\n"
    yield f"{TESTS}\n"
    if any(row.is_human for row in table.entrants):
        yield "`human` is the rationale that people marked: a yardstick, not tested nor ranked.\n"
    yield "[Overview](../README.md) · [all data](../leaderboard.json)\n"
    for family in FAMILIES:
        columns = [column for column in table.columns if column.family == family]
        if columns:
            yield f"## {family.capitalize()}\n"
            yield from _family_section(columns)
    yield "## Explainers\n"
    yield _explainer_grid(table)


def _family_section(columns: Sequence[Column]) -> Iterator[str]:
    if any(column.proxy for column in columns):
        yield "**proxy**: agreement with rationales that no person marked.\n"
    if columns[0].family == "speed":
        yield (
            "Per example; seconds and memory of each explainer alone, comparable within one "
            "machine only; passes through the network are counted, and a backward pass counts as "
            "two forward ones. No tests; the least is bold.\n"
        )
    rows = [
        [markdown(label), *(_score_text(column, label) for column in columns)]
        for label in labels_in(columns)
    ]
    if columns[0].family != "speed":
        rows.append(["pairs tested", *(str(pairs_tested(column)) for column in columns)])
    headings = [markdown(heading(column)) for column in columns]
    yield grid(rows, ["explainer", *headings]) + "\n"


def _score_text(column: Column, label: str) -> str:
    score = column.cells.get(label)
    if score is None or (score.mean is None and not score.skipped):
        return "-"
    mean = bold(mean_text(column, score), score)
    skipped = f"({score.skipped} skipped)" if score.skipped else ""
    texts = [mean, interval_text(column, score), score.letters, skipped]
    return " ".join(text for text in texts if text)


def _explainer_grid(table: Table) -> str:
    rows = [
        [
            markdown(row.label),
            markdown(row.family),
            markdown(f"{row.package} {row.version}"),
            markdown(", ".join(f"{k}={v}" for k, v in sorted(row.settings.items()))) or "-",
            ", ".join(map(str, row.seeds)),
            _submission_link(row.submission),
            # A curve starts with nothing erased, in steps of 10%.
            number(row.curve[5]) if row.curve else "-",
        ]
        for row in table.entrants
    ]
    headers = ["explainer", "family", "package", "settings", "seeds", "submission", "f at 50%"]
    note = "\n\n`f at 50%` is the mean probability of the prediction with half of the text erased."
    return grid(rows, headers) + note


def _submission_link(submission: str | None) -> str:
    """Link to the folder of a submission, from a page in `leaderboard/tasks/`."""
    if submission is None:
        return "-"
    return f"[{markdown(submission)}](../../submissions/{quote(submission, safe='')})"

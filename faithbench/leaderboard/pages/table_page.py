"""One table of the board as a page of markdown, with all its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from faithbench.leaderboard.board import Column, OperatorPair, Table
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
    power_line,
    shelved,
)
from faithbench.leaderboard.standings import ranked_columns
from faithbench.metrics.kinds import FAMILIES

BUNDLED = (
    "**bundled**: a small sample that ships with faithbench. It shows that the task runs; it does "
    "not rank explainers, and does not count in any ranking where real data are there."
)
TESTS = (
    "A cell is the mean over examples, its bootstrap 95% interval, and letters: explainers that "
    "share a letter are not significantly different. Every pair of a column is tested on the same "
    "examples (Wilcoxon signed-rank; exact McNemar where all values are 0 or 1), p after "
    "Holm-Bonferroni over the pairs of the column, alpha .05. The best mean above the line and all "
    "that are not significantly worse are bold; controls and explainers below the line can be "
    "neither. Stability is compared above the line only."
)


PLACES = (
    "Explainers are ranked by each aspect of faithfulness once, then by their mean rank. An "
    "explainer that is not better than `random` by AOPC after Holm stands *below* the line, "
    "unranked; *incomplete*: it lacks a metric that the ranking needs. Controls draw lines and are "
    "never ranked. Skill is 0 for `random` and 1 for the best."
)


def table_page(table: Table, operators: Sequence[OperatorPair] = ()) -> str:
    """Return the page of a table; `operators` compares it with others of the same examples."""
    return "\n".join(_page_lines(table, operators)) + "\n"


def _page_lines(table: Table, operators: Sequence[OperatorPair]) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield f"# {markdown(table.title)}\n"
    if table.source == "bundled":
        yield f"{BUNDLED}\n"
    yield f"{markdown(about(table))}.\n"
    yield f"{TESTS}\n"
    if any(row.is_human for row in table.entrants):
        yield "`human` is the rationale that people marked: a yardstick, not tested nor ranked.\n"
    yield "[Overview](../README.md) · [all data](../leaderboard.json)\n"
    yield "## Places\n"
    yield f"{PLACES}\n"
    yield f"{_place_grid(table)}\n"
    for line in operator_lines(table, operators):
        yield f"{line}\n"
    for family in FAMILIES:
        columns = [column for column in table.columns if column.family == family]
        if columns:
            yield f"## {family.capitalize()}\n"
            yield from _family_section(table, columns)
            if line := power_line(table, columns):
                yield f"{markdown(line)}\n"
    yield "## Explainers\n"
    yield _explainer_grid(table)


def _place_grid(table: Table) -> str:
    columns = ranked_columns(table.columns)
    rows = [
        [
            f"{row.place:g}" if row.place is not None else f"*{row.standing}*",
            markdown(row.label),
            *(f"{row.aspects[aspect]:g}" if aspect in row.aspects else "-" for aspect in columns),
            *(_skill_text(column, row.label) for column in columns.values()),
        ]
        for row in table.entrants
    ]
    titles = [markdown(column.title) for column in columns.values()]
    headers = ["", "explainer", *(f"{title} rank" for title in titles)]
    return grid(rows, [*headers, *(f"{title} skill" for title in titles)], names=2)


def _skill_text(column: Column, label: str) -> str:
    score = column.cells.get(label)
    return "-" if score is None else number(score.skill, 2)


def operator_lines(table: Table, operators: Sequence[OperatorPair]) -> Iterator[str]:
    """Tell how the order of a table agrees with that of the same examples, otherwise erased."""
    for pair in operators:
        if table.id in (pair.first, pair.second):
            other = pair.second if table.id == pair.first else pair.first
            # Of two leaders that differ, the reader should know before believing either.
            same = pair.leaders[0] == pair.leaders[1]
            yield (
                f"The same examples, erased by {' and by '.join(pair.operators)}: Kendall's tau "
                f"between the two orders is {number(pair.kendall, 2)} over {pair.shared} "
                f"explainers, {number(pair.kendall_best, 2)} over the ten best, and "
                f"{number(pair.kendall_aopc, 2)} by AOPC alone. "
                f"{'Both put the same first' if same else 'They do not agree on the first'}: "
                f"{' / '.join(', '.join(map(markdown, names)) for names in pair.leaders)}. "
                f"[The other table]({other}.md)."
            )


def _family_section(table: Table, columns: Sequence[Column]) -> Iterator[str]:
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
        for label in shelved(table, labels_in(columns))
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

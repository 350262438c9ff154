"""Reference pages in markdown: a card each, with an example, and an index of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from faithbench.cli.reference.card import Card
from faithbench.core.files import slug
from faithbench.core.papers import Paper
from faithbench.data.tasks import Task
from faithbench.leaderboard.pages.formatting import markdown

_HIDDEN = ("papers", "citation")
"""Facts that have a section of their own on a page."""


def page_name(name: str) -> str:
    """Return the file name of a page: letters, digits, dots and hyphens."""
    return f"{slug(name)}.md"


def prose(text: str) -> str:
    """Escape text for markdown, but for what stands between backticks."""
    # Spaces are split off, because what escapes the words around code would trim them.
    parts = re.split(r"(`[^`]+`|\s+)", text)
    return "".join(p if p.startswith("`") or p.isspace() else markdown(p) for p in parts)


def card_page(card: Card, example: str, shown_by: str) -> str:
    """Return the page of a card; `shown_by` is the command that prints the same."""
    parts = [f"# {prose(card.name)}", prose(card.summary), *map(prose, card.paragraphs)]
    if card.settings:
        parts += ["## Settings", table(("setting", "type", "default"), _setting_rows(card))]
    parts += ["## Facts", facts(card.facts)]
    if example:
        parts += ["## Example", example]
    if card.commands:
        parts += ["## Run it", "\n".join(f"    {command}" for command in card.commands)]
    parts += [*_papers(card.papers), f"`{shown_by}` prints this in a terminal."]
    return "\n\n".join(parts) + "\n"


def _setting_rows(card: Card) -> Iterator[tuple[str, ...]]:
    for setting in card.settings:
        yield f"`{setting.name}`", setting.kind, f"`{setting.default}`"


def task_page(
    task: Task,
    asked: Sequence[tuple[str, str]],
    sources: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    papers: Sequence[Paper],
    example: str,
) -> str:
    """Return the page of a task: what it asks, its sources, and a bundled example."""
    parts = [f"# {prose(task.name)}", prose(task.title), facts(asked)]
    for name, source in sources:
        parts += [f"## Source: {name}", facts(source)]
    if example:
        parts += ["## Example", example]
    parts += [*_papers(papers), f"`faithbench show task {task.name}` prints this in a terminal."]
    return "\n\n".join(parts) + "\n"


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Return facts as a table of two columns."""
    return table(("", ""), ((f"**{n}**", prose(v)) for n, v in rows if n not in _HIDDEN))


def table(head: Sequence[str], rows: Iterator[tuple[str, ...]] | Sequence[Sequence[str]]) -> str:
    """Return a table; its cells are markdown already."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _papers(papers: Sequence[Paper]) -> Iterator[str]:
    if not papers:
        return
    yield "## Papers"
    for paper in papers:
        text = markdown(paper.reference.removesuffix(paper.link).strip())
        yield f"{text} <{paper.link}>" if paper.link else text
        yield f"```bibtex\n{paper.bibtex}\n```"


def index_page(title: str, text: str, rows: Sequence[tuple[str, str, str]]) -> str:
    """Return a page that leads to others: name, group and summary of each, by group."""
    parts, group = [f"# {title}", text], None
    lines: list[tuple[str, str]] = []
    for name, its_group, summary in rows:
        if lines and its_group != group:
            parts += _group(group, lines)
            lines = []
        group = its_group
        lines.append((f"[`{name}`]({page_name(name)})", prose(summary)))
    return "\n\n".join([*parts, *_group(group, lines)]) + "\n"


def _group(group: str | None, lines: Sequence[tuple[str, str]]) -> list[str]:
    heading = [f"## {group.capitalize()}"] if group else []
    return [*heading, table(("name", "what it is"), lines)]

"""A card: a name, what stands behind it, its settings, facts and papers; printed in 80 columns."""

from __future__ import annotations

import inspect
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.core.papers import Paper
from faithbench.core.spec import setting_text

WIDTH = 80


@dataclass(frozen=True)
class Setting:
    """A setting as a user would type it: name, type in words, default."""

    name: str
    kind: str
    default: str


@dataclass(frozen=True)
class Card:
    """What a reference page shows: a summary, paragraphs, settings, facts and papers."""

    name: str
    summary: str
    paragraphs: tuple[str, ...] = ()
    settings: tuple[Setting, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    papers: tuple[Paper, ...] = ()
    commands: tuple[str, ...] = ()


_KINDS = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def settings_of(values: Mapping[str, object]) -> tuple[Setting, ...]:
    """Describe settings by their defaults."""
    return tuple(
        Setting(name, _KINDS[type(value)], setting_text(value) or '""')
        for name, value in values.items()
    )


def paragraphs_of(docstring: str | None) -> tuple[str, ...]:
    """Return the paragraphs of a docstring, each as one line; the first one is the summary."""
    blocks = inspect.cleandoc(docstring or "").split("\n\n")
    return tuple(" ".join(block.split()) for block in blocks if block.strip())


def plugin_options(files: Iterable[Path]) -> str:
    """Return the options by which a command reads plugin files, to stand at its end."""
    return "".join(f" --plugin {shlex.quote(str(file))}" for file in files)


def references(papers: Iterable[Paper]) -> str:
    """Return papers in a line each."""
    return "\n".join(paper.reference for paper in papers) or "none to cite"


def facts_table(facts: tuple[tuple[str, str], ...]) -> Table:
    """Lay out facts in two columns, names dimmed."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True, min_width=9)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(value))
    return table


def narrow_console() -> Console:
    """Return a console of at most 80 columns."""
    return Console(width=min(WIDTH, Console().width), highlight=False)


def print_card(card: Card) -> None:
    """Print a card to the terminal."""
    console = narrow_console()
    console.print(Text(f"{card.name}: {card.summary}", style="bold"))
    for paragraph in card.paragraphs:
        console.print(Text(f"\n{paragraph}"))
    console.print()
    if card.settings:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False)
        for column in ("setting", "type", "default"):
            table.add_column(column)
        for setting in card.settings:
            table.add_row(setting.name, setting.kind, Text(setting.default))
        console.print(table)
        console.print()
    console.print(facts_table(card.facts))
    for command in card.commands:
        console.print(Text(f"\n    {command}"), soft_wrap=True)
    for paper in card.papers:
        console.print(Text(f"\n{wrapped(paper.bibtex)}"), soft_wrap=True)


def wrapped(bibtex: str) -> str:
    """Break the lines of an entry where they are too long; BibTeX reads a break as a space."""
    return "\n".join(
        textwrap.fill(
            line, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        for line in bibtex.splitlines()
    )

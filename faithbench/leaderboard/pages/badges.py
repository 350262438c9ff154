"""A badge per explainer, for other people's pages: its place over all tables in a few words.

The files have the form that the badge service shields.io reads from an address (its "endpoint").
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from faithbench.core.files import slug
from faithbench.leaderboard.board import Board, RankedRow

LABEL = "faithbench"
_COLOURS = {"first": "brightgreen", "tied": "green", "ranked": "blue", "none": "lightgrey"}


def badges(board: Board) -> dict[str, str]:
    """Return the badges of all explainers of the board, by the names of their files."""
    told = dict(_standings(board))
    labels = sorted({row.label for table in board.tables for row in table.entrants})
    names = dict(zip(labels, badge_names(labels), strict=True))
    return {
        f"badges/{names[label]}.json": _badge(*told.get(label, ("not ranked", "none")))
        for label in labels
    }


def badge_names(labels: Sequence[str]) -> list[str]:
    """Return a file name for each explainer: its label, with a digest where that is not safe."""
    names = [slug(label) for label in labels]
    # Some file systems do not tell capitals apart.
    lowered = [name.lower() for name in names]
    return [
        name
        if len(name) <= 80 and lowered.count(name.lower()) == 1
        else f"{name[:71]}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"
        for name, label in zip(names, labels, strict=True)
    ]


def _standings(board: Board) -> Iterator[tuple[str, tuple[str, str]]]:
    """Tell each explainer of the ranking in words, and what kind of place that is."""
    ranking = board.ranking
    if ranking is None:
        return
    tables = [table for table in board.tables if table.id in ranking.tables]
    if all(table.source == "bundled" for table in tables):
        return  # samples rank nobody
    for place, row in enumerate(ranking.rows, start=1):
        yield row.label, _place(row, place, len(ranking.rows))
    for row in ranking.below:
        yield row.label, ("not better than random", "none")
    for row in ranking.controls:
        yield row.label, ("control", "none")


def _place(row: RankedRow, place: int, count: int) -> tuple[str, str]:
    over = f"rank {place} of {count}"
    if place == 1:
        return over, "first"
    return (f"{over}, tied with the first", "tied") if row.tied else (over, "ranked")


def _badge(message: str, kind: str) -> str:
    facts = {
        "schemaVersion": 1,
        "label": LABEL,
        "message": message,
        "color": _COLOURS[kind],
    }
    return json.dumps(facts, sort_keys=True) + "\n"

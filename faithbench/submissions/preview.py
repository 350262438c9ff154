"""A submission beside the explainers of the board, before it is on it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from faithbench.leaderboard.collect import find_records, groups_in, parts_of
from faithbench.leaderboard.overview import short_grid
from faithbench.leaderboard.tables import drafts_of, named
from faithbench.leaderboard.text import about, markdown


def preview(names: Collection[str], records: Path, submissions: Path) -> str:
    """Return, in markdown, a short table of each group that one of the submissions is in."""
    return "\n".join(_lines(names, records, submissions))


def _lines(names: Collection[str], records: Path, submissions: Path) -> Iterator[str]:
    found = find_records(records, submissions)
    groups = [
        group
        for part in parts_of(found)
        for group in groups_in(part)
        if any(contender.submission in names for contender in group.contenders)
    ]
    for table in named(drafts_of(groups)):
        own = {entrant.label for entrant in table.entrants if entrant.submission in names}
        yield f"### {markdown(table.title)}{' (bundled)' * (table.source == 'bundled')}\n"
        yield f"{markdown(about(table))}. Submitted: {', '.join(map(markdown, sorted(own)))}.\n"
        yield f"{short_grid(table, own)}\n"
    measured = {one.submission for one in found}
    for name in sorted(set(names) - measured):
        yield f"{markdown(name)} has no record yet: it is measured once it is merged.\n"

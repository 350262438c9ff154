"""A submission beside the explainers of the board, before it is on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.leaderboard.gather import find_records, groups_in, parts_of
from faithbench.leaderboard.pages.formatting import about, markdown
from faithbench.leaderboard.pages.overview import short_grid
from faithbench.leaderboard.tables import content_of, tables_of
from faithbench.submissions.layout import check_name


def preview(names: Collection[str], records: Path, submissions: Path) -> str:
    """Return, in markdown, a short table of each group that one of the submissions is in."""
    return "\n".join(_lines(names, records, submissions))


def _lines(names: Collection[str], records: Path, submissions: Path) -> Iterator[str]:
    found = find_records(records, submissions)
    groups = [
        group
        for part in parts_of(found)
        for group in groups_in(part)
        if any(entry.submission in names for entry in group.entries)
    ]
    for table in tables_of(map(content_of, groups)):
        own = {entrant.label for entrant in table.entrants if entrant.submission in names}
        yield f"### {markdown(table.title)}{' (bundled)' * (table.source == 'bundled')}\n"
        yield f"{markdown(about(table))}. Submitted: {', '.join(map(markdown, sorted(own)))}.\n"
        yield f"{short_grid(table, own)}\n"
    measured = {one.submission for one in found}
    for name in sorted(set(names) - measured):
        yield f"{markdown(name)} has no record yet: it is measured once it is merged.\n"


FOLDER = "submissions"


def touched(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the submissions that changed files belong to, sorted.

    Paths are as `git diff --name-only` says them. A change of submissions and of other files at
    once is refused: whoever brings an explainer must not bring the code that judges it.
    """
    names, others = set(), []
    for path in paths:
        parts = PurePosixPath(path).parts
        # A file in `submissions/` itself, a link in a folder's place too, belongs to none.
        if len(parts) > 2 and parts[0] == FOLDER and ".." not in parts:
            names.add(parts[1])
        elif path:
            others.append(path)
    if names and others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FaithbenchError(
            f"the change touches {FOLDER}/{readable(min(names), 60)} and also "
            f"{readable(others[0], 120)}{more}; make two requests of it, one for the submission "
            "and one for the rest"
        )
    return tuple(check_name(name) for name in sorted(names))

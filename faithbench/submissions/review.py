"""Review of a change: which submissions it touches, and how they compare with the board."""

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

FOLDER = "submissions"
"""Where submissions are in the repository."""


def preview(names: Collection[str], records: Path, submissions: Path) -> str:
    """Return, in markdown, a short table of each group that includes one of the submissions."""
    return "\n".join(_preview_paragraphs(names, records, submissions))


def _preview_paragraphs(names: Collection[str], records: Path, submissions: Path) -> Iterator[str]:
    published = find_records(records, submissions)
    groups = [
        group
        for part in parts_of(published)
        for group in groups_in(part)
        if any(entry.submission in names for entry in group.entries)
    ]
    for table in tables_of(map(content_of, groups)):
        submitted = {entrant.label for entrant in table.entrants if entrant.submission in names}
        yield f"### {markdown(table.title)}{' (bundled)' * (table.source == 'bundled')}\n"
        labels = ", ".join(map(markdown, sorted(submitted)))
        yield f"{markdown(about(table))}. Submitted: {labels}.\n"
        yield f"{short_grid(table, submitted)}\n"
    measured = {record.submission for record in published}
    for name in sorted(set(names) - measured):
        yield f"{markdown(name)} has no record yet: it is measured once it is merged.\n"


def touched(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the submissions that changed files belong to, sorted.

    Paths are as `git diff --name-only` prints them. A change of submissions together with other
    files is refused: it could bring an explainer and the code that measures it.
    """
    names, others = set(), []
    for path in paths:
        parts = PurePosixPath(path).parts
        # A file in `submissions/` itself belongs to none, nor does a link in place of a folder.
        if len(parts) > 2 and parts[0] == FOLDER and ".." not in parts:
            names.add(parts[1])
        elif path:
            others.append(path)
    if names and others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FaithbenchError(
            f"the change touches {FOLDER}/{readable(min(names), 60)} and also "
            f"{readable(others[0], 120)}{more}; split it into two pull requests, one for "
            "the submission and one for the rest"
        )
    return tuple(check_name(name) for name in sorted(names))

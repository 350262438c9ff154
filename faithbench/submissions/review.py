"""Review of a change: which submissions it touches, and how they compare with the board."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.leaderboard.gather import find_records, groups_in, parts_of
from faithbench.leaderboard.pages.formatting import about, markdown
from faithbench.leaderboard.pages.overview import short_grid
from faithbench.leaderboard.tables import content_of, tables_of
from faithbench.records.own_examples import without_strays
from faithbench.records.passed import PLACEHOLDER, Accepted, Submitted, accepted_submissions
from faithbench.records.store import record_files
from faithbench.submissions.layout import check_name, is_allowed

FOLDER = "submissions"
"""Where submissions are in the repository."""


_PLAIN = frozenset({"000000", "100644", "100755"})
"""Git's modes of plain files, and of those that are removed; links and modules have others."""


def preview(names: Collection[str], records: Path, submissions: Path, passed: Path) -> str:
    """Return, in markdown, a short table of each group that includes one of the submissions.

    Besides the named ones, the board's own submissions take part: those that passed their check.
    """
    others = accepted_submissions(submissions, passed).accepted
    named = [_with_all_records(submissions / name) for name in sorted(set(names))]
    shown = [*named, *(other for other in others if other.folder.name not in names)]
    joining = without_strays(records, Submitted(tuple(shown), ()))
    lines = [f"{markdown(line)}.\n" for line in joining.left_out]
    unmeasured = [
        f"{markdown(submission.folder.name)} has no record yet: it is measured once it is merged.\n"
        for submission in named
        if not submission.records
    ]
    paragraphs = _preview_paragraphs(names, records, joining.accepted)
    return "\n".join([*paragraphs, *lines, *unmeasured])


def _with_all_records(folder: Path) -> Accepted:
    paths = [f"records/{inside}" for _, inside in record_files(folder / "records")]
    return Accepted(folder, tuple(paths))


def _preview_paragraphs(
    names: Collection[str], records: Path, shown: Sequence[Accepted]
) -> Iterator[str]:
    published = find_records(records, shown)
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


def changed_paths(listing: bytes) -> list[str]:
    """Return the paths in what `git diff --raw -z --no-renames` prints; refuse links and modules.

    With -z git quotes no path, and the modes tell a link from a file before any is checked out.
    """
    fields = listing.split(b"\0")
    if fields.pop() or len(fields) % 2:
        raise FaithbenchError(
            "the list of changed files is not what `git diff --raw -z --no-renames` prints; "
            "give that on standard input"
        )
    paths = []
    for about_file, path in zip(fields[::2], fields[1::2], strict=True):
        shown = readable(path.decode(errors="replace"), 120)
        modes = about_file.decode(errors="replace").split(" ")
        if not modes[0].startswith(":") or len(modes) != 5:
            raise FaithbenchError(f"{shown}: not a line of `git diff --raw -z --no-renames`")
        if modes[1] not in _PLAIN:
            raise FaithbenchError(f"{shown} is a link or a module; replace it by a plain file")
        if not re.fullmatch(rb"[ -~]+", path) or re.search(rb"[\"\\\\]", path):
            raise FaithbenchError(f"the path {shown!r} is not plain ASCII; rename the file")
        paths.append(path.decode())
    return paths


def touched(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the submissions that changed files belong to, sorted.

    A change of submissions together with other files is refused: it could bring an explainer and
    the code that measures it. So is whatever lies among the submissions and belongs to none: it
    would be checked by nothing.
    """
    names, others = set(), []
    for path in paths:
        first, *rest = path.split("/")
        # On some systems the two spellings are one folder.
        if first.casefold() != FOLDER or rest == [PLACEHOLDER]:
            others.append(path)
        elif first == FOLDER and len(rest) > 1 and is_allowed("/".join(rest[1:])):
            names.add(rest[0])
        else:
            raise FaithbenchError(
                f"{readable(path, 120)} is no file of a submission; put the submission's files "
                f"into {FOLDER}/<name>/, and remove this one"
            )
    if names and others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise FaithbenchError(
            f"the change touches {FOLDER}/{readable(min(names), 60)} and also "
            f"{readable(others[0], 120)}{more}; split it into two pull requests, one for "
            "the submission and one for the rest"
        )
    return tuple(check_name(name) for name in sorted(names))

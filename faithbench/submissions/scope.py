"""What a change touches: submissions alone, or none; never both them and anything else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from faithbench.errors import FaithbenchError
from faithbench.submissions.isolation import readable
from faithbench.submissions.names import check_name

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

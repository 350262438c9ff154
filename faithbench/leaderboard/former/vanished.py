"""Records that a leaderboard was made from and that are no more: what a build must not hide."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHOWN = 10
"""Number of vanished records that are named, at most."""


@dataclass(frozen=True)
class FormerBoard:
    """What the board on disk says that it was made from.

    `records` is their number and `paths` are those that its tables name. `readable` is False if
    there is a file that tells neither: its records are then unknown.
    """

    records: int = 0
    paths: tuple[str, ...] = ()
    readable: bool = True


@dataclass(frozen=True)
class Vanished:
    """The records that are no more: their number, and the paths of those that are known."""

    count: int
    paths: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """A line for each vanished record, and one for those beyond the first few."""
        lines = [f"{path}: missing" for path in self.paths[:SHOWN]]
        others = self.count - len(lines)
        if others:
            lines.append(f"and {others} more records" if lines else f"{others} records: missing")
        return lines


def read_former(out: Path) -> FormerBoard:
    """Read what the board in a folder was made from; without a board, nothing.

    Boards of other versions are read too, so only what is needed is looked at.
    """
    path = out / "leaderboard.json"
    if not path.is_file():
        return FormerBoard()
    try:
        data = json.loads(path.read_bytes())
        records = int(data["records"])
    except (OSError, ValueError, KeyError, TypeError):
        return FormerBoard(readable=False)
    try:
        return FormerBoard(records, tuple(_named(data["tables"])))
    except (KeyError, TypeError):  # a board that names its records in another way
        return FormerBoard(records)


def vanished_records(former: FormerBoard, present: Sequence[str]) -> Vanished:
    """Return which records of a former board are not among those present, by their shown paths.

    A record that was made again has another digest in its file name. It counts as changed if
    its folder has as many records of that explainer as before.
    """
    gone = sorted(set(former.paths) - set(present))
    new = Counter(_without_digest(path) for path in set(present) - set(former.paths))
    paths = []
    for path in gone:
        name = _without_digest(path)
        if new[name]:
            new[name] -= 1
        else:
            paths.append(path)
    return Vanished(max(len(paths), former.records - len(present)), tuple(paths))


def _named(tables: Iterable[Any]) -> list[str]:
    """Return the paths of all records that the tables of a board name."""
    return [
        str(path)
        for table in tables
        for entrant in table["entrants"]
        for path in entrant["records"]
    ]


def _without_digest(path: str) -> str:
    """Return a record's path without the digest of its identity: folder and explainer."""
    return re.sub(r"-[0-9a-f]{8}\.json$", "", path)

"""The examples of the board's own tables: a record of a submission has these, or is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, Self

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.records.identity import folder_name
from faithbench.records.passed import Submitted
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record
from faithbench.records.store import record_files

RECORDS = Path("leaderboard/records")
"""Where the board's own records are in the repository."""
SHOWN_IDS = 3


class MeasuredOn(NamedTuple):
    """What a table is of, as far as a submission chooses it: the data, and the model's name."""

    task: str
    source: str
    split: str
    model: str

    @classmethod
    def by(cls, record: Record) -> Self:
        """Return what a record is of."""
        return cls(record.task.name, record.task.source, record.task.split, record.model.name)


def own_examples(records: Path, measured: MeasuredOn) -> tuple[str, ...]:
    """Return the ids of the examples of the board's own table, or none if it has no such table.

    Where its records are of several sets of examples, that of most records counts, then the
    largest. Records of other operators and of other ways to read long texts have tables of their
    own, which no submission can join.
    """
    folder = records / folder_name(measured.task, measured.source)
    counts: Counter[tuple[str, ...]] = Counter()
    for path, _ in record_files(folder) if folder.is_dir() else []:
        if not path.is_file():  # a pipe, of which a build says so
            continue
        record = read(path)
        usual = (record.protocol.operator, record.protocol.long) == ("mask", "truncate")
        if usual and record.fresh is None and MeasuredOn.by(record) == measured:
            rows = read_rows(path.with_name(record.rows.file), record.rows.sha256)
            counts[tuple(row.id for row in rows)] += 1
    return max(counts, key=lambda ids: (counts[ids], len(ids), ids), default=())


def unlike(ids: Collection[str], own: Collection[str]) -> str:
    """Return in words how examples differ from those of the board's table, or nothing.

    Nothing is wrong where the board has no table.
    """
    missing = sorted(set(own) - set(ids))
    others = sorted(set(ids) - set(own))
    if not own or not (missing or others):
        return ""
    parts = [
        f"{len(names)} {'is' if len(names) == 1 else 'are'} {what} ({_listed(names)})"
        for what, names in (("missing", missing), ("too many", others))
        if names
    ]
    return f"the board's table has {len(set(own))} examples: {' and '.join(parts)}"


def without_strays(records: Path, submitted: Submitted) -> Submitted:
    """Leave out records of submissions that are not of the examples of the board's own table.

    They would stand alone in a second table of the same task, first in every column.
    """
    accepted, left_out = [], [*submitted.left_out]
    own_of = cache(partial(own_examples, records))  # a table's records are read once for all
    for submission in submitted.accepted:
        kept = []
        for inside in submission.records:
            path = submission.folder / inside
            if not path.is_file():
                kept.append(inside)  # the build says so
                continue
            try:
                record = read(path)
                rows = read_rows(path.with_name(record.rows.file), record.rows.sha256)
            except FaithbenchError:
                kept.append(inside)  # the build says what is wrong with it
                continue
            own = own_of(MeasuredOn.by(record))
            if problem := unlike([row.id for row in rows], own):
                shown = f"{submission.folder.parent.name}/{submission.folder.name}/{inside}"
                left_out.append(f"{shown}: left out, {problem}; measure the submission again")
            else:
                kept.append(inside)
        accepted.append(replace(submission, records=tuple(kept)))
    return Submitted(tuple(accepted), tuple(left_out))


def _listed(names: Collection[str]) -> str:
    shown = [readable(name, 40) for name in names][:SHOWN_IDS]
    more = [f"and {len(names) - len(shown)} more"] if len(names) > len(shown) else []
    return ", ".join([*shown, *more])

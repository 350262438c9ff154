"""Records of the leaderboard and of submissions, sorted into groups of like with like."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.core.types import Floats
from faithbench.leaderboard.names import labels_of
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.entrants import Entrant
from faithbench.records.record import read
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord


@dataclass(frozen=True)
class PublishedRecord:
    """A record that takes part: where it lies, as a page may say it, and who submitted it."""

    stored: StoredRecord
    place: str
    submission: str | None


Part = list[tuple[PublishedRecord, str]]
"""Records with their labels, of which no other part has any on the same terms."""


@dataclass(frozen=True)
class Entry:
    """An explainer of a group, with the submission that it came by, if any."""

    label: str
    sheets: tuple[RecordValues, ...]
    places: tuple[str, ...]
    submission: str | None

    @property
    def is_human(self) -> bool:
        """Say whether this is the rationale that people marked: a yardstick, not a method."""
        return self.first.explainer.name == "human"

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Return its records, which differ in their seeds alone."""
        return tuple(sheet.stored.record for sheet in self.sheets)

    @property
    def first(self) -> Record:
        """Return its first record."""
        return self.records[0]

    def values(self, metric: str) -> Floats:
        """Return one value per example, in the order of the sorted ids: the mean over seeds."""
        if len(self.sheets) == 1:
            return self.sheets[0].values[metric]
        entrant = Entrant(self.label, tuple(sheet.stored for sheet in self.sheets))
        return np.array(entrant.values(metric, self.sheets[0].ids), dtype=float)


@dataclass(frozen=True)
class Group:
    """All explainers on the same terms, by label."""

    terms: Conditions
    contenders: tuple[Entry, ...]


def find_records(records: Path, submissions: Path) -> list[PublishedRecord]:
    """Read all records below two folders, not yet their rows; a missing folder holds none."""
    found = [
        PublishedRecord(StoredRecord(path, read(path)), f"records/{place}", None)
        for path, place in record_files(records)
    ]
    entries = sorted(submissions.iterdir()) if submissions.is_dir() else []
    for entry in entries:
        for path, place in record_files(entry / "records"):
            where = f"submissions/{entry.name}/records/{place}"
            found.append(PublishedRecord(StoredRecord(path, read(path)), where, entry.name))
    if not found:
        raise FaithbenchError(
            f"no record in {records} nor in {submissions}; make some with `faithbench run`, then "
            "`faithbench leaderboard publish --results results --records "
            f"{records}`, or point --records at another folder"
        )
    return found


def digest_of(found: Sequence[PublishedRecord]) -> str:
    """Digest what a leaderboard is made from: each record and, through it, its rows."""
    lines = sorted(f"{file_sha256(one.stored.path)} {one.place}" for one in found)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def parts_of(found: Sequence[PublishedRecord]) -> list[Part]:
    """Label all records and part them by what shows without their rows: each part is a job."""
    labels = labels_of([(one.stored, one.submission) for one in found])
    parts: dict[tuple[str, str, str], Part] = {}
    for one, label in zip(found, labels, strict=True):
        record = one.stored.record
        key = (record.task.name, record.task.source, record.model.weights_sha256)
        parts.setdefault(key, []).append((one, label))
    return list(parts.values())


def groups_in(part: Part) -> list[Group]:
    """Read the rows of a part and sort its records into groups that share all terms."""
    kinds: dict[Conditions, dict[str, list[tuple[PublishedRecord, RecordValues]]]] = {}
    for one, label in part:
        sheet = read_values(one.stored)
        kinds.setdefault(sheet.terms, {}).setdefault(label, []).append((one, sheet))
    return [
        Group(terms, tuple(_contender(label, own[label]) for label in sorted(own)))
        for terms, own in kinds.items()
    ]


def _contender(label: str, own: Sequence[tuple[PublishedRecord, RecordValues]]) -> Entry:
    """Pool records of different seeds, refusing two of the same."""
    ordered = sorted(own, key=lambda pair: (pair[0].stored.record.seeds, pair[0].place))
    for place, (one, _) in enumerate(ordered):
        for other, _ in ordered[place + 1 :]:
            _check_apart(label, one.stored, other.stored)
    return Entry(
        label,
        tuple(sheet for _, sheet in ordered),
        tuple(one.place for one, _ in ordered),
        ordered[0][0].submission,
    )


def _check_apart(label: str, own: StoredRecord, rival: StoredRecord) -> None:
    first, second = own.record, rival.record
    both = sorted(set(first.seeds) & set(second.seeds))
    if both:
        raise FaithbenchError(
            f"two records of {label} on the same terms share seed {both[0]}: {own.path} "
            f"and {rival.path}; keep one of them"
        )
    for name in ("package", "version", "assets"):
        if getattr(first.explainer, name) != getattr(second.explainer, name):
            raise FaithbenchError(
                f"records of {label} under different seeds differ in the explainer's {name}: "
                f"{own.path} and {rival.path}; run both again, or keep one of them"
            )


def record_files(folder: Path) -> list[tuple[Path, str]]:
    """Return the records' files below a folder, hidden ones left out, and where they lie in it."""
    paths = [(path, path.relative_to(folder)) for path in folder.rglob("*.json")]
    shown = [
        (path, inside.as_posix())
        for path, inside in paths
        if not any(part.startswith(".") for part in inside.parts)
    ]
    return sorted(shown, key=lambda pair: pair[1])


STEPS = 9
"""So many shares of a text are erased for a curve: 10, 20, ..., 90%."""


@dataclass(frozen=True)
class RecordValues:
    """A record with its terms and values: one per example, in the order of the sorted `ids`.

    A missing value is NaN, so that the values of a metric are one array.
    `curve` is the mean probability as more is erased, over the examples that have a curve;
    `scored` are the rows that keep tokens and scores, by id.
    """

    stored: StoredRecord
    terms: Conditions
    ids: tuple[str, ...]
    values: dict[str, Floats]
    curve: tuple[float, ...]
    scored: dict[str, ResultRow]


def read_values(stored: StoredRecord) -> RecordValues:
    """Read the rows of a record, checked against its digest, and keep what tables need."""
    record = stored.record
    rows = read_rows(stored.path.with_name(record.rows.file), record.rows.sha256)
    ordered = sorted(rows, key=lambda row: row.id)
    try:
        found = [[*map(row.values.__getitem__, record.metrics)] for row in ordered]
    except KeyError as error:
        raise FaithbenchError(
            f"record {stored.path} holds metric {error}, which some of its rows do not have; "
            "restore the files or run the cell again"
        ) from error
    # A row per metric: each is read as a whole, over and over.
    table = np.array(found, dtype=float).reshape(len(ordered), len(record.metrics)).T.copy()
    curves = [(row.probability, *row.curve) for row in ordered if len(row.curve) == STEPS]
    return RecordValues(
        stored,
        conditions_of(record, ordered),
        tuple(row.id for row in ordered),
        dict(zip(record.metrics, table, strict=True)),
        tuple(np.mean(curves, axis=0).tolist()) if curves else (),
        {row.id: row for row in ordered if row.tokens},
    )

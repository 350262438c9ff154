"""Published and submitted records, read and sorted into groups that may be compared."""

from __future__ import annotations

import hashlib
import math
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, zip_longest
from pathlib import Path

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.core.rounding import decimals
from faithbench.core.types import Floats
from faithbench.explainers.registry import is_control
from faithbench.leaderboard.names import labels_of
from faithbench.metrics.registry import METRICS
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.passed import Accepted
from faithbench.records.record import read
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord, record_files

MAX_VALUE = 1e6
"""Largest value of a metric without bounds: those are log-odds and counts, far below this."""
CURVE_STEPS = 9
"""Number of erased shares in a curve: 10, 20, ..., 90%."""


@dataclass(frozen=True)
class PublishedRecord:
    """A record that takes part, its path as pages show it, and its submission, if any."""

    stored: StoredRecord
    shown_path: str
    submission: str | None


Part = list[tuple[PublishedRecord, str]]
"""Records with their labels; no record of another part shares their conditions."""


@dataclass(frozen=True)
class RecordValues:
    """A record with its conditions and its values: one per example, in the order of `ids`.

    A missing value is NaN, so that the values of a metric are one array. `by_seed` has, for each
    metric that was measured under several seeds, an array with a row per seed. `curve` is the
    mean probability as more is erased, over the examples that have a curve; `scored` are the rows
    that keep tokens and scores, by id. `ids` are sorted.
    """

    stored: StoredRecord
    conditions: Conditions
    ids: tuple[str, ...]
    values: dict[str, Floats]
    by_seed: dict[str, Floats]
    curve: tuple[float, ...]
    scored: dict[str, ResultRow]

    def seed_values(self, metric: str) -> Floats:
        """Return the values of a metric with a row per seed."""
        return self.by_seed[metric] if metric in self.by_seed else self.values[metric][None]


@dataclass(frozen=True)
class Entry:
    """An explainer of a group: its records, which differ in their seeds alone."""

    label: str
    record_values: tuple[RecordValues, ...]
    shown_paths: tuple[str, ...]
    submission: str | None

    @property
    def is_human(self) -> bool:
        """Return whether this is the rationale that people marked: a yardstick, not a method."""
        return self.first.explainer.name == "human"

    @property
    def is_random(self) -> bool:
        """Return whether these are scores drawn at random, which every method should beat."""
        return self.submission is None and self.first.explainer.name == "random"

    @property
    def is_control(self) -> bool:
        """Return whether this explainer does not look at the model: a line, not a method."""
        name = self.first.explainer.name
        # A submission may have any name: only our own controls are known to be some.
        return self.submission is None and is_control(name)

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """Return the records, in the order of their seeds."""
        return tuple(values.stored.record for values in self.record_values)

    @property
    def first(self) -> Record:
        """Return the first record."""
        return self.records[0]

    def values(self, metric: str) -> Floats:
        """Return one value per example, in the order of the sorted ids: the mean over seeds."""
        if len(self.record_values) == 1:
            return self.record_values[0].values[metric]
        seeds = [values.seed_values(metric) for values in self.record_values]
        return _mean_over_seeds(np.concatenate(seeds))


@dataclass(frozen=True)
class Group:
    """All explainers that were measured under the same conditions, by label."""

    conditions: Conditions
    entries: tuple[Entry, ...]


def find_records(records: Path, submissions: Sequence[Accepted]) -> list[PublishedRecord]:
    """Read the records of a folder and of accepted submissions, not yet their rows."""
    published = [
        PublishedRecord(StoredRecord(path, read(path)), shown_path, submission)
        for path, shown_path, submission in _published_files(records, submissions)
    ]
    if not published:
        raise FaithbenchError(
            f"no record in {records} nor of a submission that passed its check; "
            "make some with `faithbench run`, then `faithbench leaderboard publish --results "
            f"results --records {records}`, or point --records at another folder"
        )
    return published


def shown_paths(records: Path, submissions: Sequence[Accepted]) -> list[str]:
    """Return the paths of all records as pages show them, without reading any."""
    return [shown_path for _, shown_path, _ in _published_files(records, submissions)]


def _published_files(
    records: Path, submissions: Sequence[Accepted]
) -> list[tuple[Path, str, str | None]]:
    """Return the files of all records, their paths as pages show them, and their submissions.

    A missing records folder is refused: a mistyped name would else make a board of the
    submissions alone.
    """
    if not records.is_dir():
        raise FaithbenchError(
            f"no records folder {records}; check --records, or make it with "
            f"`faithbench leaderboard publish --results results --records {records}`"
        )
    files: list[tuple[Path, str, str | None]] = [
        (path, f"records/{inside}", None) for path, inside in record_files(records)
    ]
    for submission in submissions:
        name = submission.folder.name
        for inside in submission.records:
            files.append((submission.folder / inside, f"submissions/{name}/{inside}", name))
    for path, _, _ in files:
        # Reading a pipe would wait for ever, and a link may lead anywhere.
        if not stat.S_ISREG(path.lstat().st_mode):
            raise FaithbenchError(f"record {path} is not a plain file; remove it")
    return files


def records_digest(records: Sequence[PublishedRecord]) -> str:
    """Return a digest of everything a leaderboard is made from."""
    # A record holds the digest of its rows, so that the rows need not be read here.
    lines = sorted(f"{file_sha256(record.stored.path)} {record.shown_path}" for record in records)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def parts_of(records: Sequence[PublishedRecord]) -> list[Part]:
    """Label all records, and split them into parts that can be worked on side by side.

    Conditions include the ids of the examples, which are in the rows: a part is therefore what
    shares the conditions that the record alone tells, and may hold several groups.
    """
    labels = labels_of([(published.stored, published.submission) for published in records])
    parts: dict[tuple[str, str, str], Part] = {}
    for published, label in zip(records, labels, strict=True):
        record = published.stored.record
        key = (record.task.name, record.task.source, record.model.digest)
        parts.setdefault(key, []).append((published, label))
    return list(parts.values())


def groups_in(part: Part) -> list[Group]:
    """Read the rows of a part, and sort its records into groups that share all conditions."""
    groups: dict[Conditions, dict[str, list[tuple[PublishedRecord, RecordValues]]]] = {}
    for published, label in part:
        values = read_values(published.stored)
        groups.setdefault(values.conditions, {}).setdefault(label, []).append((published, values))
    return [
        Group(conditions, tuple(_entry(label, labelled[label]) for label in sorted(labelled)))
        for conditions, labelled in groups.items()
    ]


def read_values(stored: StoredRecord) -> RecordValues:
    """Read the rows of a record, checked against its digest, and keep only what tables need."""
    record = stored.record
    rows = read_rows(stored.path.with_name(record.rows.file), record.rows.sha256)
    ordered = sorted(rows, key=lambda row: row.id)
    try:
        values = [[*map(row.values.__getitem__, record.metrics)] for row in ordered]
    except KeyError as error:
        raise FaithbenchError(
            f"record {stored.path} holds metric {error}, which some of its rows do not have; "
            "restore the files or run the cell again"
        ) from error
    # Turned and copied, so that the values of a metric lie next to each other in memory: they
    # are read as a whole, once for every pair of explainers.
    by_metric = np.array(values, dtype=float).reshape(len(ordered), len(record.metrics)).T.copy()
    by_name = dict(zip(record.metrics, by_metric, strict=True))
    by_seed = _values_by_seed(record, ordered)
    _check_possible(stored, len(rows), [*by_name.items(), *by_seed.items()])
    curves = [(row.probability, *row.curve) for row in ordered if len(row.curve) == CURVE_STEPS]
    return RecordValues(
        stored=stored,
        conditions=conditions_of(record, ordered),
        ids=tuple(row.id for row in ordered),
        values=by_name,
        by_seed=by_seed,
        curve=tuple(np.mean(curves, axis=0).tolist()) if curves else (),
        scored={row.id: row for row in ordered if row.tokens},
    )


def _check_possible(stored: StoredRecord, rows: int, values: Sequence[tuple[str, Floats]]) -> None:
    """Refuse a record that no run can have written: no examples or seeds, values out of range."""
    record = stored.record
    problem = ""
    if not rows or record.task.n != rows:
        problem = f"says n = {record.task.n} and has {rows} examples"
    elif not record.seeds:
        problem = "names no seed"
    for name, array in values:
        present = array[~np.isnan(array)]
        low, high = -MAX_VALUE, MAX_VALUE
        if name in METRICS:
            low, high = max(low, METRICS[name].low), min(high, METRICS[name].high)
        # Values are rounded to 9 decimals, which may put one just beyond its bound.
        wrong = present[(present < low - 1e-9) | (present > high + 1e-9)]
        if len(wrong) and not problem:
            problem = f"has a {name} of {wrong[0]:g}, where {low:g} to {high:g} is possible"
    if problem:
        raise FaithbenchError(
            f"record {stored.path} {problem}; remove it, or run the explainer again"
        )


def _values_by_seed(record: Record, rows: Sequence[ResultRow]) -> dict[str, Floats]:
    """Return, for metrics with several values per example, an array with a row per seed."""
    names = {name for row in rows for name in row.by_seed}.intersection(record.metrics)
    return {
        # A row with fewer values than others has gaps, which become NaN.
        name: np.array(
            list(zip_longest(*(row.by_seed.get(name, (row.values[name],)) for row in rows))),
            dtype=float,
        )
        for name in sorted(names)
    }


def _mean_over_seeds(values: Floats) -> Floats:
    """Return the mean of each column over its rows, NaN where no row has a value."""
    means = []
    for column in values.T:
        present = column[~np.isnan(column)].tolist()
        # An exact sum, rounded as in rows: the order of the records must not show.
        means.append(decimals(math.fsum(present) / len(present)) if present else math.nan)
    return np.array(means)


def _entry(label: str, labelled: Sequence[tuple[PublishedRecord, RecordValues]]) -> Entry:
    """Pool records of different seeds, refusing two that share a seed."""
    ordered = sorted(labelled, key=lambda pair: (pair[0].stored.record.seeds, pair[0].shown_path))
    for (first, _), (second, _) in combinations(ordered, 2):
        _check_poolable(label, first.stored, second.stored)
    return Entry(
        label=label,
        record_values=tuple(values for _, values in ordered),
        shown_paths=tuple(published.shown_path for published, _ in ordered),
        submission=ordered[0][0].submission,
    )


def _check_poolable(label: str, first: StoredRecord, second: StoredRecord) -> None:
    """Refuse two records of one explainer that are not the same thing under other seeds."""
    both = sorted(set(first.record.seeds) & set(second.record.seeds))
    if both:
        raise FaithbenchError(
            f"two records of {label} under the same conditions share seed {both[0]}: "
            f"{first.path} and {second.path}; keep one of them"
        )
    for name in ("package", "version", "assets"):
        if getattr(first.record.explainer, name) != getattr(second.record.explainer, name):
            raise FaithbenchError(
                f"records of {label} under different seeds differ in the explainer's {name}: "
                f"{first.path} and {second.path}; run both again, or keep one of them"
            )

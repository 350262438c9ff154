"""Records of the leaderboard and of submissions, sorted into groups of like with like."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from faithbench.entrants import Entrant
from faithbench.errors import FaithbenchError
from faithbench.leaderboard.labels import labels_of
from faithbench.leaderboard.sheets import Sheet, read_sheet
from faithbench.records import Record, read
from faithbench.stored import Stored
from faithbench.terms import Terms
from faithbench.types import Floats


@dataclass(frozen=True)
class Found:
    """A record that takes part: where it lies, as a page may say it, and who submitted it."""

    sheet: Sheet
    place: str
    submission: str | None


@dataclass(frozen=True)
class Contender:
    """An explainer of a group, with the submission that it came by, if any."""

    label: str
    sheets: tuple[Sheet, ...]
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

    terms: Terms
    contenders: tuple[Contender, ...]


def find_records(records: Path, submissions: Path) -> list[Found]:
    """Read all records below two folders; one that does not exist holds none."""
    found = [Found(read_sheet(Stored(path, read(path))), f"records/{place}", None)
             for path, place in record_files(records)]  # fmt: skip
    entries = sorted(submissions.iterdir()) if submissions.is_dir() else []
    for entry in entries:
        for path, place in record_files(entry / "records"):
            where = f"submissions/{entry.name}/records/{place}"
            found.append(Found(read_sheet(Stored(path, read(path))), where, entry.name))
    if not found:
        raise FaithbenchError(
            f"no record in {records} nor in {submissions}; make some with `faithbench run`, then "
            "`faithbench leaderboard publish --results results --records "
            f"{records}`, or point --records at another folder"
        )
    return found


def digest_of(found: Sequence[Found]) -> str:
    """Digest what a leaderboard is made from: each record and, through it, its rows."""
    lines = sorted(
        f"{hashlib.sha256(one.sheet.stored.path.read_bytes()).hexdigest()} {one.place}"
        for one in found
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def groups_of(found: Sequence[Found]) -> list[Group]:
    """Sort records into groups that share all terms, ordered by these."""
    labels = labels_of([(one.sheet.stored, one.submission) for one in found])
    kinds: dict[Terms, dict[str, list[Found]]] = {}
    for one, label in zip(found, labels, strict=True):
        kinds.setdefault(one.sheet.terms, {}).setdefault(label, []).append(one)
    return [
        Group(terms, tuple(_contender(label, own[label]) for label in sorted(own)))
        for terms, own in sorted(kinds.items(), key=lambda kind: _place(kind[0]))
    ]


def _contender(label: str, own: Sequence[Found]) -> Contender:
    """Pool records of different seeds, refusing two of the same."""
    ordered = sorted(own, key=lambda one: (one.sheet.stored.record.seeds, one.place))
    for place, one in enumerate(ordered):
        for other in ordered[place + 1 :]:
            _check_apart(label, one, other)
    return Contender(
        label,
        tuple(one.sheet for one in ordered),
        tuple(one.place for one in ordered),
        ordered[0].submission,
    )


def _check_apart(label: str, one: Found, other: Found) -> None:
    own, rival = one.sheet.stored, other.sheet.stored
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


def _place(terms: Terms) -> tuple[str, ...]:
    """Order groups by task, bundled data last, then by whatever else differs."""
    return (
        terms.task, str(terms.source == "bundled"), terms.source, f"{terms.task_version:06}",
        terms.split, terms.operator, terms.long, terms.dtype, terms.weights_sha256, terms.ids,
        terms.data_sha256, f"{terms.protocol:06}", terms.erasure_token,
    )  # fmt: skip


def record_files(folder: Path) -> list[tuple[Path, str]]:
    """Return the records' files below a folder, hidden ones left out, and where they lie in it."""
    paths = [(path, path.relative_to(folder)) for path in folder.rglob("*.json")]
    shown = [
        (path, inside.as_posix())
        for path, inside in paths
        if not any(part.startswith(".") for part in inside.parts)
    ]
    return sorted(shown, key=lambda pair: pair[1])

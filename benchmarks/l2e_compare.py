"""Students against their teachers by one measure at a time: means, spreads and tests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

from l2e_measure import NOTES, Table
from l2e_study import TEXTS, Pair, joint, study

from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.stats.pairwise import ALPHA, holm
from faithbench.stats.signed_rank import PairedTest, signed_rank


@dataclass(frozen=True)
class Measure:
    """A value that student and teacher are compared by.

    It is a metric of records, or the `name` of a reading in the notes; `decimals` are shown.
    """

    name: str
    title: str
    decimals: int
    higher_is_better: bool = True
    reading: bool = False


@dataclass(frozen=True)
class Note:
    """What was measured of a student that learned from `texts`: records, and further readings."""

    pair: Pair
    texts: int
    records: dict[str, StoredRecord]
    tables: dict[str, Table]
    costs: dict[str, Any] | None

    def values(self, measure: Measure, who: str) -> Table:
        """Return the values of student, teacher or random scores, per text and initialisation."""
        if measure.reading:
            return self.tables[f"{measure.name} {who}"]
        name = measure.name
        return [list(row.by_seed.get(name, (row.values[name],))) for row in self.records[who].rows]

    def has(self, measure: Measure) -> bool:
        """Return whether it was measured so: labels are read of the labelling form alone."""
        if measure.reading:
            return f"{measure.name} student" in self.tables
        return measure.name in self.records["student"].rows[0].values


def read_notes(records: Path) -> list[Note]:
    """Read the notes below a folder of records, in the order of the study."""
    notes = []
    for task in TEXTS:
        for pair in dict.fromkeys((*study(task), *joint(task))):
            path = records / NOTES / f"{pair.folder}.json"
            if path.exists():
                note = json.loads(path.read_text())
                stored = {
                    name: StoredRecord(records / file, read(records / file))
                    for name, file in note["records"].items()
                }
                notes.append(Note(pair, note["texts"], stored, note["tables"], note["costs"]))
    return notes


@dataclass(frozen=True)
class Line:
    """A student against its teacher by one measure, texts in the same order."""

    note: Note
    measure: Measure
    student: Table
    teacher: Table
    random: Table

    @cached_property
    def test(self) -> PairedTest:
        """Wilcoxon's signed-rank test over texts, each the mean of its initialisations."""
        return signed_rank(by_text(self.student), by_text(self.teacher))

    @property
    def blank(self) -> int:
        """The number of texts, counted once per initialisation, without a value."""
        return sum(value is None for line in self.student for value in line)

    def outcome(self, adjusted: float | None) -> str:
        """Return whether the student is `better`, `worse` or neither, by an adjusted p."""
        if adjusted is None or adjusted >= ALPHA:
            return "even"
        return "better" if (self.test.effect > 0) == self.measure.higher_is_better else "worse"

    def cells(self, adjusted: float | None) -> tuple[str, ...]:
        """Return random, teacher, student with its spread, and p after Holm."""
        d = self.measure.decimals
        return (
            mean_text(self.random, d),
            mean_text(self.teacher, d),
            spread(self.student, d),
            p_text(adjusted),
        )


def by_text(table: Table) -> list[float | None]:
    """Return the mean of each text over the initialisations that have a value."""
    return [_fmean(value for value in line if value is not None) for line in table]


def by_seed(table: Table) -> list[float]:
    """Return the mean of each initialisation over the texts that have a value."""
    means = [_fmean(v for v in column if v is not None) for column in zip(*table, strict=True)]
    return [mean for mean in means if mean is not None]


def overall(table: Table) -> float | None:
    """Return the mean over initialisations of their means."""
    return _fmean(by_seed(table))


def _fmean(values: Iterable[float]) -> float | None:
    there = list(values)
    return fmean(there) if there else None


def lines_of(notes: Sequence[Note], measure: Measure) -> list[Line]:
    """Return the lines of a table: students that were measured so, and have one teacher."""
    return [
        Line(
            note, measure, *(note.values(measure, who) for who in ("student", "teacher", "random"))
        )
        for note in notes
        if "teacher" in note.records and note.has(measure)
    ]


def adjusted_of(lines: Sequence[Line]) -> list[float | None]:
    """Return p after Holm over all lines that could be tested, None for the others."""
    tests = [line.test.p for line in lines]
    stepped = iter(holm([p for p in tests if p is not None]))
    return [None if p is None else next(stepped) for p in tests]


def spread(table: Table, decimals: int) -> str:
    """Write the mean over initialisations, and the lowest and highest of them."""
    means = by_seed(table)
    if not means:
        return "-"
    low, high = (short(bound, decimals) for bound in (min(means), max(means)))
    return f"{short(fmean(means), decimals)} ({low} to {high})"


def mean_text(table: Table, decimals: int) -> str:
    """Write the mean over initialisations."""
    mean = overall(table)
    return "-" if mean is None else short(mean, decimals)


def short(value: float, decimals: int) -> str:
    """Write a number without the 0 before its point."""
    text = f"{value:.{decimals}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def p_text(adjusted: float | None) -> str:
    """Write a p value, bold where it is significant."""
    if adjusted is None:
        return "-"
    text = "<.0001" if adjusted < 1e-4 else short(float(f"{adjusted:.2g}"), 4).rstrip("0")
    text = "1" if adjusted >= 0.995 else text
    return f"**{text}**" if adjusted < ALPHA else text

"""Which submissions need measuring: those whose content was not measured and checked here yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.models.files.digest import sha256_of_model
from faithbench.models.files.weights import locate
from faithbench.records.passed import PassedCheck, content_digest
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import check_place, check_record, read_submitted
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores, score_file

Passed = Mapping[str, PassedCheck]
"""Passed checks by the name of their submission."""


@dataclass(frozen=True)
class NeededRecord:
    """A record that a submission should have, and whether it was measured here, of these files."""

    folder: Path
    kind: str
    task: str
    source: str
    split: str
    model: str | None
    limit: int | None
    current: bool


def needed_records(
    folder: Path, task: str, limit: int | None, data: Path | None, passed: Passed
) -> Iterator[NeededRecord]:
    """Yield the records a submission should have: a plugin on `task`, attributions on their own.

    The other records that a plugin came with are measured again too. Records on data that are
    not here (`data` is their folder) are left out: they take no part until somebody has the data.
    """
    files = files_of(folder)  # raises if a file does not belong there
    entry = read_entry(folder)
    known = passed.get(folder.name)
    same = known is not None and known.content == content_digest(folder)
    measured = known.records if known is not None and same else ()
    wanted: list[tuple[str, str, str, str | None, int | None]] = []
    if entry.kind == "plugin":
        wanted = [(task, "bundled", "test", None, limit), *_sent(folder, files, entry, task)]
    for file in entry.scores:
        scored = max(1, len(read_scores(score_file(folder, file.task))))
        wanted.append((file.task, file.source, file.split, file.model, scored))
    for name, source, split, model, count in wanted:
        if source == "bundled" or data is not None:
            dataset = load_dataset(
                known_task(name), source=source, split=split, folder=data, limit=count
            )
            model_sha256 = sha256_of_model(locate(*known_model(dataset.task, source, model)))
            current = _has_current_record(folder, entry, dataset, model_sha256, measured)
            yield NeededRecord(folder, entry.kind, name, source, split, model, count, current)


def passed_check(folder: Path, measured: Iterable[str], checks: Checks) -> PassedCheck:
    """Check a submission whose records were measured here, and return what to record of it."""
    checked = check_submission(folder, checks)
    if checked.faults:
        raise FaithbenchError(f"measured, but its check fails: {checked.faults[0]}")
    # One that was measured before may have been replaced since.
    present = set(measured).intersection(files_of(folder))
    return PassedCheck(content=content_digest(folder), records=tuple(sorted(present)))


def _sent(
    folder: Path, files: Iterable[str], entry: Entry, task: str
) -> Iterator[tuple[str, str, str, str | None, int]]:
    """Yield what the records that came with a plugin were measured on, but for the usual one."""
    for name in files:
        if name.startswith("records/") and name.endswith(".json"):
            try:
                record = read_submitted(folder, name, entry).record
            except FaithbenchError:
                continue  # the check names it
            of, usual = record.task, known_task(task).models.get("bundled")
            model = record.model.name
            if (of.name, of.source) != (task, "bundled") or usual is None or model != usual.name:
                yield of.name, of.source, of.split, model, of.n


def _has_current_record(
    folder: Path, entry: Entry, data: Dataset, model_sha256: str, measured: Iterable[str]
) -> bool:
    """Return whether a record measured here is of these examples, model, metrics, versions."""
    for name in measured:
        try:
            submitted = read_submitted(folder, name, entry)
        except (FaithbenchError, OSError):
            continue  # unreadable: measure it again
        record = submitted.record
        measured_on = (record.task.name, record.task.source, record.task.split)
        if (
            measured_on == (data.task.name, data.source, data.split)
            and record.model.sha256 == model_sha256
            and not any(check_record(submitted, data))
            and not any(check_place(submitted))
        ):
            return True
    return False

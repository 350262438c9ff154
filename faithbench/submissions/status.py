"""Which submissions need measuring: those without a record of their current files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.models.weights import locate, sha256_of_weights
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import check_place, check_record, read_submitted
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores, score_file


@dataclass(frozen=True)
class NeededRecord:
    """A record on bundled data that a submission should have, and whether it is up to date."""

    folder: Path
    kind: str
    task: str
    current: bool


def needed_records(folder: Path, task: str, limit: int | None) -> Iterator[NeededRecord]:
    """Yield the records a submission should have: a plugin on `task`, attributions on their own."""
    files_of(folder)  # raises if a file does not belong there
    entry = read_entry(folder)
    if entry.kind == "plugin":
        yield _needed_record(folder, entry, task, "test", None, limit)
    for file in entry.scores:
        if file.source == "bundled":
            count = len(read_scores(score_file(folder, file.task)))
            yield _needed_record(folder, entry, file.task, file.split, file.model, max(1, count))


def _needed_record(
    folder: Path, entry: Entry, task: str, split: str, model: str | None, limit: int | None
) -> NeededRecord:
    data = load_dataset(known_task(task), source="bundled", split=split, limit=limit)
    weights = sha256_of_weights(locate(*known_model(data.task, data.source, model)))
    current = _has_current_record(folder, entry, data, weights)
    return NeededRecord(folder, entry.kind, task, current)


def _has_current_record(folder: Path, entry: Entry, data: Dataset, weights: str) -> bool:
    """Return whether a record is of these very files, examples, weights, metrics and versions."""
    for name in files_of(folder):
        if not (name.startswith("records/") and name.endswith(".json")):
            continue
        try:
            submitted = read_submitted(folder, name, entry)
        except FaithbenchError:
            continue  # unreadable: measure it again
        record = submitted.record
        measured_on = (record.task.name, record.task.source, record.task.split)
        if (
            measured_on == (data.task.name, data.source, data.split)
            and record.model.weights_sha256 == weights
            and not any(check_record(submitted, data))
            and not any(check_place(submitted))
        ):
            return True
    return False

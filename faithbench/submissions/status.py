"""Which submissions are to be measured: those without a record of what they are now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.models.weights import locate, sha256_of_weights
from faithbench.submissions.check import read_record
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import prove_place, prove_record
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores, score_file


@dataclass(frozen=True)
class Wanted:
    """A record on bundled data that a submission should have, and whether it has it."""

    folder: Path
    kind: str
    task: str
    current: bool


def wanted_records(folder: Path, task: str, limit: int | None) -> Iterator[Wanted]:
    """Yield what a submission should have: a plugin the given task, attributions their own."""
    files_of(folder)  # refuses what does not belong there
    entry = read_entry(folder)
    if entry.kind == "plugin":
        yield _wanted(folder, entry, task, "test", None, limit)
    for one in entry.scores:
        if one.source == "bundled":
            count = len(read_scores(score_file(folder, one.task)))
            yield _wanted(folder, entry, one.task, one.split, one.model, max(1, count))


def _wanted(
    folder: Path, entry: Entry, task: str, split: str, model: str | None, limit: int | None
) -> Wanted:
    data = load_dataset(known_task(task), source="bundled", split=split, limit=limit)
    weights = sha256_of_weights(locate(*known_model(data.task, data.source, model)))
    return Wanted(folder, entry.kind, task, _is_current(folder, entry, data, weights))


def _is_current(folder: Path, entry: Entry, data: Dataset, weights: str) -> bool:
    """Say whether a record is of these very files, examples, weights, metrics and versions."""
    for name in files_of(folder):
        if not (name.startswith("records/") and name.endswith(".json")):
            continue
        try:
            record, rows, key = read_record(folder, name)
        except FaithbenchError:
            continue  # as good as none: it is measured again
        named = (record.task.name, record.task.source, record.task.split)
        if (
            named == (data.task.name, data.source, data.split)
            and record.model.weights_sha256 == weights
            and not any(prove_record(folder, name, entry, data, record, rows))
            and not any(prove_place(name, entry, record, rows, key))
        ):
            return True
    return False

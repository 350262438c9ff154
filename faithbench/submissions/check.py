"""Prove a submission: its files, its entry, and of each record that nobody made it up.

Nothing of a submission is run here, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.records.record import read
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_keyed_rows
from faithbench.records.schema import Record
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.faults import Fault
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import prove_place, prove_record
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores

if TYPE_CHECKING:
    from faithbench.submissions.measure import Setup


LARGEST_RECORD = 200_000
LARGEST_CODE = 200_000


@dataclass(frozen=True)
class Checks:
    """How to check: where data are, with how many examples, and how to put a model on a bench.

    Without `bench_of`, what needs a model is left out. `kept` is a folder for neighbours.
    """

    data: Path | None
    kept: Path
    sample: int = 8
    bench_of: Callable[[Dataset, str, str | None], Setup] | None = None


@dataclass(frozen=True)
class Checked:
    """What was found: how many records there are, and what is wrong."""

    records: int
    faults: tuple[Fault, ...]


def check_submission(folder: Path, checks: Checks) -> Checked:
    """Check one submission in full; what cannot even be read is a fault like others."""
    try:
        files = files_of(folder)
        entry = read_entry(folder)
    except FaithbenchError as error:
        return Checked(0, (Fault(folder.name, "files", str(error), "then check again"),))
    faults = [*_prove_files(folder, entry, files)]
    records = [name for name in files if name.startswith("records/") and name.endswith(".json")]
    for name in records:
        try:
            faults += _prove(folder, name, entry, checks)
        except FaithbenchError as error:
            faults.append(Fault(name, "content", _relative(folder, str(error)), "then check again"))
    return Checked(len(records), tuple(faults))


def _prove_files(folder: Path, entry: Entry, files: tuple[str, ...]) -> Iterator[Fault]:
    """Prove that the files are those of the entry's kind, and that none is left over."""
    remove = "remove it, or change entry.toml"
    scores = [f"scores/{one.task}.jsonl" for one in entry.scores]
    if entry.kind == "plugin":
        yield from _prove_code(folder, files)
    for name in files:
        if name.endswith(".py") or name.startswith("data/"):
            if entry.kind != "plugin":
                yield Fault(name, "file", "is not one of attributions", remove)
        elif name.startswith("scores/"):
            if name.removesuffix(".gz") in scores:
                yield from _prove_scores(folder, name)
            else:
                yield Fault(name, "file", "is not named in entry.toml", remove)
        elif name.endswith(".rows.jsonl") and f"{name[: -len('.rows.jsonl')]}.json" not in files:
            yield Fault(name, "file", "is without its record", "remove it")
    for name in scores:
        if name not in files and f"{name}.gz" not in files:
            yield Fault(name, "file", "is named in entry.toml and missing", "write it")
    folders = [name.rpartition("/")[0] for name in files if name.endswith(".json")]
    for place in sorted({p for p in folders if p.startswith("records/") and folders.count(p) > 1}):
        yield Fault(place, "files", "holds more than one record", "keep the newest one")


def _prove_code(folder: Path, files: tuple[str, ...]) -> Iterator[Fault]:
    for name in ("explainer.py", "test_explainer.py"):
        if name not in files:
            yield Fault(name, "file", "is missing", "`faithbench submission new` writes one")
        elif (folder / name).stat().st_size > LARGEST_CODE:
            yield Fault(name, "file", f"has more than {LARGEST_CODE} bytes", "shorten it")


def _prove_scores(folder: Path, name: str) -> Iterator[Fault]:
    try:
        read_scores(folder / name)
    except FaithbenchError as error:
        yield Fault(name, "content", str(error), "then check again")


def _prove(folder: Path, name: str, entry: Entry, checks: Checks) -> Iterator[Fault]:
    """Prove one record, and measure it again if there is a model."""
    record, rows, key = read_record(folder, name)
    task = known_task(record.task.name)
    named = (record.task.name, record.task.source, record.task.split)
    if entry.scores and named not in {(one.task, one.source, one.split) for one in entry.scores}:
        yield Fault(name, "task", f"entry.toml names no scores of {' '.join(named)}", "add them")
        return
    data = load_dataset(
        task,
        source=record.task.source,
        split=record.task.split,
        folder=checks.data,
        limit=len(rows),
        allow_changed=False,
    )
    model = known_model(task, data.source, record.model.name)
    faults = [*prove_record(folder, name, entry, data, record, rows)]
    faults += prove_place(name, entry, record, rows, key)
    yield from faults
    # Only what adds up is worth the model's time, and safe to measure.
    if not faults and checks.bench_of is not None:
        from faithbench.submissions.model_checks import prove_measured

        bench = checks.bench_of(data, *model)
        yield from prove_measured(
            folder, name, entry, bench, record, rows, checks.sample, checks.kept
        )


def read_record(folder: Path, name: str) -> tuple[Record, tuple[ResultRow, ...], str]:
    """Read a record with its rows, whose file has the record's own name, and their key."""
    path = folder / name
    if path.stat().st_size > LARGEST_RECORD:
        raise FaithbenchError(f"has more than {LARGEST_RECORD} bytes; a record has far fewer")
    record = read(path)
    beside = f"{path.stem}.rows.jsonl"
    if record.rows.file != beside:
        raise FaithbenchError(
            f"rows.file is {record.rows.file!r:.60}, expected {beside!r}; "
            "a record's rows lie beside it, under its own name"
        )
    key, rows = read_keyed_rows(path.with_name(beside), record.rows.sha256)
    if not rows:
        raise FaithbenchError(f"rows file {beside} holds no example; measure the submission again")
    return record, rows, key


def _relative(folder: Path, message: str) -> str:
    """Say paths as they are within the submission."""
    return message.replace(f"{folder}/", "")

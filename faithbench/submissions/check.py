"""Check a submission: its files, its entry, and that its records were measured, not made up.

Nothing of a submission is run here, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.faults import Fault
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import check_place, check_record, read_submitted
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores

MAX_CODE_BYTES = 200_000


@dataclass(frozen=True)
class Checks:
    """How to check: the folder of data, and how much to measure again.

    `with_model` says whether the model is loaded, to measure again what needs it: some metrics on
    `sample` examples, all else on all. `cache` is a folder for neighbours of examples.
    """

    data: Path | None
    cache: Path
    sample: int = 8
    with_model: bool = False


@dataclass(frozen=True)
class Checked:
    """The result of a check: the number of records, and what is wrong."""

    records: int
    faults: tuple[Fault, ...]


def check_submission(folder: Path, checks: Checks) -> Checked:
    """Check one submission in full; what cannot even be read is a fault like others."""
    try:
        files = files_of(folder)
        entry = read_entry(folder)
    except FaithbenchError as error:
        return Checked(0, (Fault(folder.name, "files", str(error), "then check again"),))
    faults = [*_check_files(folder, entry, files)]
    records = [name for name in files if name.startswith("records/") and name.endswith(".json")]
    for name in records:
        try:
            faults += _check_one_record(folder, name, entry, checks)
        except FaithbenchError as error:
            problem = _with_relative_paths(folder, str(error))
            faults.append(Fault(name, "content", problem, "then check again"))
    return Checked(len(records), tuple(faults))


def _check_files(folder: Path, entry: Entry, files: tuple[str, ...]) -> Iterator[Fault]:
    """Check that the files are those of the entry's kind, and that none is left over."""
    remove = "remove it, or change entry.toml"
    scores = [f"scores/{file.task}.jsonl" for file in entry.scores]
    if entry.kind == "plugin":
        yield from _check_code(folder, files)
    for name in files:
        if name.endswith(".py") or name.startswith("data/"):
            if entry.kind != "plugin":
                yield Fault(name, "file", "does not belong to attributions", remove)
        elif name.startswith("scores/"):
            if name.removesuffix(".gz") in scores:
                yield from _check_scores(folder, name)
            else:
                yield Fault(name, "file", "is not named in entry.toml", remove)
        elif name.endswith(".rows.jsonl") and f"{name[: -len('.rows.jsonl')]}.json" not in files:
            yield Fault(name, "file", "is without its record", "remove it")
    for name in scores:
        if name not in files and f"{name}.gz" not in files:
            yield Fault(name, "file", "is named in entry.toml and missing", "write it")
    parents = [name.rpartition("/")[0] for name in files if name.endswith(".json")]
    for parent in sorted(set(parents)):
        if parent.startswith("records/") and parents.count(parent) > 1:
            yield Fault(parent, "files", "holds more than one record", "keep the newest one")


def _check_code(folder: Path, files: tuple[str, ...]) -> Iterator[Fault]:
    for name in ("explainer.py", "test_explainer.py"):
        if name not in files:
            yield Fault(name, "file", "is missing", "`faithbench submission new` writes one")
        elif (folder / name).stat().st_size > MAX_CODE_BYTES:
            yield Fault(name, "file", f"has more than {MAX_CODE_BYTES} bytes", "shorten it")


def _check_scores(folder: Path, name: str) -> Iterator[Fault]:
    try:
        read_scores(folder / name)
    except FaithbenchError as error:
        yield Fault(name, "content", str(error), "then check again")


def _check_one_record(folder: Path, name: str, entry: Entry, checks: Checks) -> Iterator[Fault]:
    """Check one record, and measure it again if there is a model."""
    submitted = read_submitted(folder, name, entry)
    record = submitted.record
    task = known_task(record.task.name)
    measured_on = (record.task.name, record.task.source, record.task.split)
    expected = {(file.task, file.source, file.split) for file in entry.scores}
    if entry.scores and measured_on not in expected:
        problem = f"entry.toml names no scores of {' '.join(measured_on)}"
        yield Fault(name, "task", problem, "add them")
        return
    data = load_dataset(
        task,
        source=record.task.source,
        split=record.task.split,
        folder=checks.data,
        limit=len(submitted.rows),
        allow_changed=False,
    )
    known_model(task, data.source, record.model.name)  # raises unless anyone can get it
    faults = [*check_record(submitted, data), *check_place(submitted)]
    yield from faults
    # A record at odds with itself is not worth the model's time, nor safe to measure.
    if checks.with_model and not faults:
        from faithbench.submissions.measure import load_setup
        from faithbench.submissions.model_checks import check_measured

        setup = load_setup(data, record.model.name)
        yield from check_measured(submitted, setup, checks.sample, checks.cache)


def _with_relative_paths(folder: Path, message: str) -> str:
    return message.replace(f"{folder}/", "")

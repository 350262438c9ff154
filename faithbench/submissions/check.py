"""Check a submission: its files, its entry, and that its records were measured, not made up.

Nothing of a submission is run here, and nothing is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.records.own_examples import MeasuredOn, own_examples, unlike
from faithbench.submissions.entry import Entry, ScoreFile, read_entry
from faithbench.submissions.faults import Fault
from faithbench.submissions.layout import files_of
from faithbench.submissions.record_checks import check_place, check_record, read_submitted
from faithbench.submissions.rules import known_model, known_task
from faithbench.submissions.score_files import read_scores
from faithbench.submissions.visible import refuse_hidden, refuse_hidden_code

MAX_TEXT_BYTES = 200_000
TEXTS = ("explainer.py", "test_explainer.py", "README.md", "LICENSE")
"""Files that people read before they trust what they say or do."""
REMOVE = "remove it, or change entry.toml"


@dataclass(frozen=True)
class Checks:
    """How to check: the folder of data, and how much to measure again.

    `with_model` says whether the model is loaded, to measure again what needs it: some metrics on
    `sample` examples, all else on all. These are drawn from the record and `secret`. `cache` is a
    folder for neighbours of examples. `board` is the folder of the board's own records, whose
    examples a submission should have; without one, any will do.
    """

    data: Path | None
    cache: Path
    sample: int = 8
    with_model: bool = False
    secret: str = ""
    board: Path | None = None


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
        problem = re.sub(rf"^submission {re.escape(folder.name)},? ", "", str(error))
        return Checked(0, (Fault("", "", problem, "then check again"),))
    faults = [*_check_files(folder, entry, files, checks.board)]
    records = [name for name in files if name.startswith("records/") and name.endswith(".json")]
    for name in records:
        try:
            faults += _check_one_record(folder, name, entry, checks)
        except FaithbenchError as error:
            problem = _with_relative_paths(folder, str(error))
            faults.append(Fault(name, "content", problem, "then check again"))
    return Checked(len(records), tuple(faults))


def _check_files(
    folder: Path, entry: Entry, files: tuple[str, ...], board: Path | None
) -> Iterator[Fault]:
    """Check that the files are those of the entry's kind, and that none is left over."""
    for name in ("explainer.py", "test_explainer.py"):
        if entry.kind == "plugin" and name not in files:
            yield Fault(name, "file", "is missing", "`faithbench submission new` writes one")
    for name in files:
        if name in TEXTS:
            yield from _check_text(folder, name)
        if entry.kind != "plugin" and (name.endswith(".py") or name.startswith("data/")):
            yield Fault(name, "file", "does not belong to attributions", REMOVE)
        elif name.endswith(".rows.jsonl") and f"{name[: -len('.rows.jsonl')]}.json" not in files:
            yield Fault(name, "file", "is without its record", "remove it")
    yield from _check_all_scores(folder, entry, files, board)
    parents = [name.rpartition("/")[0] for name in files if name.endswith(".json")]
    for parent in sorted(set(parents)):
        if parent.startswith("records/") and parents.count(parent) > 1:
            yield Fault(parent, "files", "holds more than one record", "keep the newest one")


def _check_all_scores(
    folder: Path, entry: Entry, files: tuple[str, ...], board: Path | None
) -> Iterator[Fault]:
    """Check that there is one readable file of scores for each task of the entry."""
    named = {f"scores/{file.task}.jsonl": file for file in entry.scores}
    for name in files:
        if not name.startswith("scores/"):
            continue
        if name.removesuffix(".gz") not in named:
            yield Fault(name, "file", "is not named in entry.toml", REMOVE)
        elif f"{name}.gz" in files:
            yield Fault(name, "file", f"is there and {name}.gz too", "keep one of them")
        else:
            yield from _check_scores(folder, name, named[name.removesuffix(".gz")], board)
    for name in named:
        if name not in files and f"{name}.gz" not in files:
            yield Fault(name, "file", "is named in entry.toml and missing", "write it")


def _check_text(folder: Path, name: str) -> Iterator[Fault]:
    """Check that a file shows a reader all that it says."""
    if (folder / name).stat().st_size > MAX_TEXT_BYTES:
        yield Fault(name, "file", f"has more than {MAX_TEXT_BYTES} bytes", "shorten it")
        return
    refuse = refuse_hidden_code if name.endswith(".py") else refuse_hidden
    try:
        refuse(name, (folder / name).read_bytes())
    except FaithbenchError as error:
        yield Fault(name, "content", str(error), "then check again")


def _check_scores(folder: Path, name: str, file: ScoreFile, board: Path | None) -> Iterator[Fault]:
    try:
        ids = tuple(read_scores(folder / name))
        model, _ = known_model(known_task(file.task), file.source, file.model)
    except FaithbenchError as error:
        yield Fault(name, "content", str(error), "then check again")
        return
    measured = MeasuredOn(file.task, file.source, file.split, model)
    yield from _check_examples(name, ids, measured, board, "give scores of these and no others")


def _check_examples(
    name: str, ids: Iterable[str], measured: MeasuredOn, board: Path | None, remedy: str
) -> Iterator[Fault]:
    """Check that examples are those of the board's own table of the same data and model."""
    own = () if board is None else own_examples(board, measured)
    if problem := unlike(tuple(ids), own):
        yield Fault(name, "examples", problem, remedy)


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
    ids = [row.id for row in submitted.rows]
    remedy = "measure it again, without --limit"
    yield from _check_examples(name, ids, MeasuredOn.by(record), checks.board, remedy)
    # A record at odds with itself is not worth the model's time, nor safe to measure.
    if checks.with_model and not faults:
        from faithbench.submissions.measure import load_setup
        from faithbench.submissions.model_checks import check_measured

        setup = load_setup(data, record.model.name)
        yield from check_measured(submitted, setup, checks.sample, checks.cache, checks.secret)


def _with_relative_paths(folder: Path, message: str) -> str:
    return message.replace(f"{folder}/", "")

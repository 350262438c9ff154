"""Records in a results folder: all of a task, and those that a label or a file name means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import slug
from faithbench.core.spec import parse_explainers, setting_text
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.record import read
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record


@dataclass(frozen=True)
class StoredRecord:
    """A record and its file; the rows are read when they are first needed, and then kept."""

    path: Path
    record: Record

    @cached_property
    def rows(self) -> tuple[ResultRow, ...]:
        """The rows next to the record, checked against its digest."""
        facts = self.record.rows
        return read_rows(self.path.with_name(facts.file), facts.sha256)

    @cached_property
    def by_id(self) -> dict[str, ResultRow]:
        """The rows by the id of their example."""
        return {row.id: row for row in self.rows}

    @cached_property
    def conditions(self) -> Conditions:
        """The conditions under which the record was made; this reads its rows."""
        return conditions_of(self.record, self.rows)


def record_files(folder: Path) -> list[tuple[Path, str]]:
    """Return the record files below a folder, and their paths inside it, in the order of those.

    Hidden folders are left out: a run keeps unfinished rows and cached neighbours there.
    """
    paths = [(path, path.relative_to(folder)) for path in folder.rglob("*.json")]
    visible = [
        (path, inside.as_posix())
        for path, inside in paths
        if not any(name.startswith(".") for name in inside.parts)
    ]
    # By the text of the path: the order must not depend on the system's separator.
    return sorted(visible, key=lambda pair: pair[1])


def stored_records(results: Path, task: str) -> list[StoredRecord]:
    """Read all records of a task below a folder, in the order of their paths."""
    if not results.is_dir():
        raise FaithbenchError(
            f"results folder {results} does not exist; point --results at the folder that "
            "`faithbench run` wrote to"
        )
    every = [StoredRecord(path, read(path)) for path, _ in record_files(results)]
    of_task = [stored for stored in every if stored.record.task.name == task]
    if not of_task:
        tasks = sorted({stored.record.task.name for stored in every})
        others = f"only of {', '.join(tasks)}" if tasks else "nor of any other"
        raise FaithbenchError(
            f"no record of task {task!r} in {results}, {others}; run the task first, or point "
            "--results at another folder"
        )
    return of_task


def matching(word: str, records: Sequence[StoredRecord], folder: str) -> list[StoredRecord]:
    """Return the records that a word means: `name[:key=value,...]`, or the path of a record.

    Settings that are not named may have any value. Where the matches differ in those, the ones
    whose file name is the word itself, as `run` writes it, are preferred: `lime` is then the
    one with default settings. `folder` is where the records are from, for errors.
    """
    if word.endswith(".json"):
        return [_by_path(Path(word), records, folder)]
    ((name, settings),) = parse_explainers(word)
    named = [stored for stored in records if stored.record.explainer.name == name]
    if not named:
        hint = unknown(
            "recorded explainer", name, {stored.record.explainer.name for stored in records}
        )
        raise FaithbenchError(
            f"{hint} (looked in {folder}); name one that is there, or run it first: "
            f"faithbench run --task {records[0].record.task.name} --explainer {name}"
        )
    matches = [stored for stored in named if _has_settings(stored.record, settings)]
    if not matches:
        raise FaithbenchError(
            f"no record of {word!r} in {folder}, only {', '.join(telling_labels(named))}; "
            "name one of these, or run it first"
        )
    if len({str(sorted(s.record.explainer.settings.items())) for s in matches}) > 1:
        exact = re.compile(rf"{re.escape(slug(word))}-[0-9a-f]{{8}}")
        return [stored for stored in matches if exact.fullmatch(stored.path.stem)] or matches
    return matches


def telling_labels(records: Sequence[StoredRecord]) -> list[str]:
    """Label records of one explainer by the settings in which they differ."""
    every = [stored.record.explainer.settings for stored in records]
    keys = sorted({key for settings in every for key in settings})
    varied = [key for key in keys if len({str(settings.get(key)) for settings in every}) > 1]
    name = records[0].record.explainer.name
    labels = [
        name
        + (":" if varied else "")
        + ",".join(f"{key}={setting_text(settings.get(key))}" for key in varied)
        for settings in every
    ]
    return sorted(set(labels))


def _by_path(path: Path, records: Sequence[StoredRecord], folder: str) -> StoredRecord:
    """Return the record of a file, which may lie outside the folder but must be of its task."""
    stored = StoredRecord(path, read(path))
    task = records[0].record.task.name
    if stored.record.task.name != task:
        raise FaithbenchError(
            f"record {path} is of task {stored.record.task.name!r}, not of {task!r}; "
            f"give --task {stored.record.task.name}, or a record from {folder}"
        )
    return stored


def _has_settings(record: Record, typed: dict[str, str]) -> bool:
    settings = record.explainer.settings
    return all(key in settings and _equals(settings[key], text) for key, text in typed.items())


def _equals(value: bool | int | float | str, text: str) -> bool:
    """Return whether a setting has the value that was typed: 0.5 is 0.50, and true is True."""
    if isinstance(value, bool | str):
        return setting_text(value) == (text.lower() if isinstance(value, bool) else text)
    try:
        return float(text) == value
    except ValueError:
        return False

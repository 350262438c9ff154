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
    """A record and where it lies; its rows are read when they are asked for."""

    path: Path
    record: Record

    @cached_property
    def rows(self) -> tuple[ResultRow, ...]:
        """Return the rows beside the record, checked against its digest."""
        facts = self.record.rows
        return read_rows(self.path.with_name(facts.file), facts.sha256)

    @cached_property
    def terms(self) -> Conditions:
        """Return on what terms the record was made."""
        return conditions_of(self.record, self.rows)


def stored_records(results: Path, task: str) -> list[StoredRecord]:
    """Read all records of a task under a folder, in the order of their paths.

    Hidden folders are left out: a run keeps there what it computed on the way.
    """
    if not results.is_dir():
        raise FaithbenchError(
            f"results folder {results} does not exist; point --results at the folder that "
            "`faithbench run` wrote to"
        )
    paths = sorted(results.rglob("*.json"))
    shown = [p for p in paths if not any(n.startswith(".") for n in p.relative_to(results).parts)]
    found = [StoredRecord(path, read(path)) for path in shown]
    own = [stored for stored in found if stored.record.task.name == task]
    if not own:
        tasks = sorted({stored.record.task.name for stored in found})
        others = f"only of {', '.join(tasks)}" if tasks else "nor of any other"
        raise FaithbenchError(
            f"no record of task {task!r} in {results}, {others}; run the task first, or point "
            "--results at another folder"
        )
    return own


def matching(word: str, records: Sequence[StoredRecord], place: str) -> list[StoredRecord]:
    """Return the records that a word means: `name[:key=value,...]`, or the path of one.

    Settings that are not named may be anything; but if records differ in them, those whose file
    name says the word itself, as `run` wrote it, come first: `lime` is then the default one.
    """
    if word.endswith(".json"):
        return [_by_path(Path(word), records, place)]
    ((name, settings),) = parse_explainers(word)
    named = [stored for stored in records if stored.record.explainer.name == name]
    if not named:
        hint = unknown(
            "recorded explainer", name, {stored.record.explainer.name for stored in records}
        )
        raise FaithbenchError(
            f"{hint} (looked in {place}); name one that is there, or run it first: "
            f"faithbench run --task {records[0].record.task.name} --explainer {name}"
        )
    found = [stored for stored in named if _has(stored.record, settings)]
    if not found:
        raise FaithbenchError(
            f"no record of {word!r} in {place}, only {', '.join(telling_labels(named))}; "
            "name one of these, or run it first"
        )
    if len({_settings(stored) for stored in found}) > 1:
        exact = re.compile(rf"{re.escape(slug(word))}-[0-9a-f]{{8}}")
        return [stored for stored in found if exact.fullmatch(stored.path.stem)] or found
    return found


def telling_labels(records: Sequence[StoredRecord]) -> list[str]:
    """Label records of one explainer by the settings in which they differ."""
    settings = [stored.record.explainer.settings for stored in records]
    keys = sorted({key for one in settings for key in one})
    varied = [key for key in keys if len({str(one.get(key)) for one in settings}) > 1]
    name = records[0].record.explainer.name
    labels = [
        name
        + (":" if varied else "")
        + ",".join(f"{key}={setting_text(one.get(key))}" for key in varied)
        for one in settings
    ]
    return sorted(set(labels))


def _by_path(path: Path, records: Sequence[StoredRecord], place: str) -> StoredRecord:
    """Return a record by its file, wherever it lies."""
    found = StoredRecord(path, read(path))
    task = records[0].record.task.name
    if found.record.task.name != task:
        raise FaithbenchError(
            f"record {path} is of task {found.record.task.name!r}, not of {task!r}; "
            f"give --task {found.record.task.name}, or a record from {place}"
        )
    return found


def _has(record: Record, settings: dict[str, str]) -> bool:
    own = record.explainer.settings
    return all(key in own and _same(own[key], text) for key, text in settings.items())


def _same(value: bool | int | float | str, text: str) -> bool:
    """Compare a setting with what was typed: 0.5 is 0.50, and true is True."""
    if isinstance(value, bool | str):
        return setting_text(value) == (text.lower() if isinstance(value, bool) else text)
    try:
        return float(text) == value
    except ValueError:
        return False


def _settings(stored: StoredRecord) -> str:
    return str(sorted(stored.record.explainer.settings.items()))

"""From a task to its examples, out of the first source that has them or the one asked for."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Example
from faithbench.data.examples import parse_examples
from faithbench.data.jsonl import sample_by_digest
from faithbench.data.sources import SplitRequest, find_source
from faithbench.data.task_schema import Rationale, source_names
from faithbench.data.tasks import Task


@dataclass(frozen=True)
class Dataset:
    """The examples of one split, and where they came from.

    `sha256` is the digest of the bytes read, or of the rows' canonical JSON for the hub.
    `checked` says that the task pins these data: by checksum, by the hub's commit, or by
    shipping them with the package.
    """

    task: Task
    source: str
    split: str
    examples: tuple[Example, ...]
    sha256: str
    rationale: Rationale
    checked: bool


def load_dataset(
    task: Task,
    *,
    source: str = "auto",
    split: str = "test",
    folder: Path | None = None,
    limit: int | None = None,
    allow_changed: bool = False,
) -> Dataset:
    """Read one split of a task; `auto` takes the first source that can give it.

    A `folder` that is given must hold the file, if the task has files at all: it is never
    passed over in silence. With `auto`, a hub failure falls back to bundled data, with a warning.
    """
    if limit is not None and limit < 1:
        raise FaithbenchError(f"asked for a limit of {limit} examples; give 1 or more, or none")
    chosen = _choose(task, source, split, folder)
    reader = find_source(chosen)
    try:
        opened = reader.read(_request(task, chosen, split, folder, allow_changed))
    except FaithbenchError as error:
        if not reader.remote or source != "auto" or _obstacle(task, "bundled", split, folder):
            raise
        message = f"task {task.name} takes its bundled data, as the {chosen} failed: {error}"
        warnings.warn(message, UserWarning, stacklevel=2)
        return load_dataset(task, source="bundled", split=split, limit=limit)
    unread: Counter[str] = Counter()
    examples = sample_by_digest(parse_examples(task, opened.rows, unread), limit)
    if not examples:
        raise FaithbenchError(f"split {split!r} of {task.name} from {chosen} holds no rows")
    # Of data that the task pins, all fields are known.
    if unread and not opened.checked:
        warnings.warn(_note(task, chosen, split, unread), UserWarning, stacklevel=2)
    return Dataset(
        task=task,
        source=chosen,
        split=split,
        examples=examples,
        sha256=opened.digest(),
        rationale=opened.rationale,
        checked=opened.checked,
    )


def _note(task: Task, source: str, split: str, unread: Counter[str]) -> str:
    """Say in one line which fields of how many rows were passed over."""
    rows = sorted(unread.items())
    fields = ", ".join(f"{field} ({count} row{'s' * (count > 1)})" for field, count in rows)
    return f"split {split!r} of task {task.name} ({source}) has fields that are not read: {fields}"


def sources(task: Task, folder: Path | None = None, split: str = "test") -> dict[str, str]:
    """Return for each source "yes", or why it cannot give this split; nothing is loaded."""
    return {name: _obstacle(task, name, split, folder) or "yes" for name in source_names()}


def _choose(task: Task, source: str, split: str, folder: Path | None) -> str:
    """Return the source asked for, or the first that can give the split; else say why none can."""
    names = source_names()
    if source not in (*names, "auto"):
        raise unknown("data source", source, (*names, "auto"))
    if source == "auto" and folder is not None and task.folder is not None:
        source = "folder"
    obstacles: dict[str, str] = {}
    for candidate in [name for name in names if source in (name, "auto")]:
        obstacle = _obstacle(task, candidate, split, folder)
        if obstacle is None:
            return candidate
        if source != "auto" or candidate in task.tables:
            obstacles[candidate] = obstacle
    reasons = "; ".join(f"{name}: {reason}" for name, reason in obstacles.items())
    others = [name for name in task.tables if name not in obstacles]
    advice = "give --data" if task.folder else "fetch it once where the hub is reachable"
    if others:
        advice = f"other sources of this task: {', '.join(others)}"
    splits = dict.fromkeys(name for table in task.tables.values() for name in table.splits)
    if split not in splits:
        advice = f"choose one of {', '.join(splits)} with --split"
    raise FaithbenchError(f"cannot read split {split!r} of task {task.name} ({reasons}); {advice}")


def _obstacle(task: Task, source: str, split: str, folder: Path | None) -> str | None:
    """Return why a source cannot give a split, or None if it can; cheap, nothing is loaded."""
    table = task.tables.get(source)
    if table is None:
        return f"the task has no {source} source"
    if split not in table.splits:
        return f"no split {split!r}, it has {', '.join(table.splits)}"
    return find_source(source).obstacle(_request(task, source, split, folder))


def _request(
    task: Task, source: str, split: str, folder: Path | None, allow_changed: bool = False
) -> SplitRequest[Any]:
    return SplitRequest(task, task.tables[source], split, folder, allow_changed)

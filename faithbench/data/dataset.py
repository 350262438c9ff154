"""From a task to its examples: out of a data folder, the Hugging Face hub, or the package."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Example
from faithbench.data.examples import parse_examples
from faithbench.data.hub import hub_reachable
from faithbench.data.hub_rows import dataset_cached, hub_rows
from faithbench.data.jsonl import file_digest, read_rows, sample_by_digest, share_of
from faithbench.data.task_schema import Rationale, Source
from faithbench.data.tasks import SOURCES, Placed, Task


@dataclass(frozen=True)
class Dataset:
    """The examples of one split, and where they came from.

    `sha256` is the digest of the bytes read, or of the rows' canonical JSON for the hub.
    `checked` says that the task pins these data: by checksum, by the hub's commit, or by
    shipping them with the package.
    """

    task: Task
    source: Source
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
    passed over in silence. A hub that fails while loading under `auto` gives way to the
    bundled data, with a warning.
    """
    if limit is not None and limit < 1:
        raise FaithbenchError(f"asked for a limit of {limit} examples; give 1 or more, or none")
    chosen = _choose(task, source, split, folder)
    if chosen != "hub":
        return _from_file(task, chosen, split, folder, limit, allow_changed)
    assert task.hub is not None  # or it would not have been chosen
    try:
        rows, digest = hub_rows(task, split)
    except FaithbenchError as error:
        if source != "auto" or _obstacle(task, "bundled", split, folder):
            raise
        message = f"task {task.name} takes its bundled data, as the hub failed: {error}"
        warnings.warn(message, UserWarning, stacklevel=2)
        return load_dataset(task, source="bundled", split=split, limit=limit)
    examples = _examples(task, "hub", split, rows, limit)
    part = task.hub
    return Dataset(task, "hub", split, examples, digest.hexdigest(), part.rationale, part.pinned)


def _from_file(
    task: Task,
    source: Source,
    split: str,
    folder: Path | None,
    limit: int | None,
    allow_changed: bool,
) -> Dataset:
    """Read a split from its file; a pinned file is checked before its rows are looked at."""
    path = _file(task, source, split, folder)
    assert path is not None  # or it would not have been chosen
    digest = file_digest(path)
    rows: Iterable[Placed] = read_rows(path)
    if source == "bundled" and task.bundled:
        checked, rationale = True, task.bundled.rationale
    else:
        assert task.folder is not None  # the only other source with files
        checked = _is_pinned(task, split, path, digest, allow_changed)
        rationale = task.rationale
        if derived := task.folder.derive.get(task.folder.splits[split]):
            rows = share_of(rows, derived, split)
    examples = _examples(task, source, split, rows, limit)
    return Dataset(task, source, split, examples, digest, rationale, checked)


def _examples(
    task: Task, source: Source, split: str, rows: Iterable[Placed], limit: int | None
) -> tuple[Example, ...]:
    examples = sample_by_digest(parse_examples(task, rows), limit)
    if not examples:
        raise FaithbenchError(f"split {split!r} of {task.name} from {source} holds no rows")
    return examples


def sources(task: Task, folder: Path | None = None, split: str = "test") -> dict[Source, str]:
    """Say for each source "yes", or why it cannot give this split; nothing is loaded."""
    return {source: _obstacle(task, source, split, folder) or "yes" for source in SOURCES}


def _choose(task: Task, source: str, split: str, folder: Path | None) -> Source:
    if source not in (*SOURCES, "auto"):
        raise unknown("data source", source, (*SOURCES, "auto"))
    if source == "auto" and folder is not None and task.folder is not None:
        source = "folder"
    obstacles: dict[str, str] = {}
    for candidate in [name for name in SOURCES if source in (name, "auto")]:
        obstacle = _obstacle(task, candidate, split, folder)
        if obstacle is None:
            return candidate
        if source != "auto" or getattr(task, candidate) is not None:
            obstacles[candidate] = obstacle
    reasons = "; ".join(f"{name}: {reason}" for name, reason in obstacles.items())
    others = [name for name in SOURCES if name not in obstacles and getattr(task, name)]
    advice = "give --data" if task.folder else "fetch it once where the hub is reachable"
    if others:
        advice = f"other sources of this task: {', '.join(others)}"
    raise FaithbenchError(f"cannot read split {split!r} of task {task.name} ({reasons}); {advice}")


def _obstacle(task: Task, source: Source, split: str, folder: Path | None) -> str | None:
    """Say why a source cannot give a split, or None if it can; cheap, nothing is loaded."""
    part = getattr(task, source)
    if part is None:
        return f"the task has no {source} source"
    if split not in part.splits:
        return f"no split {split!r}, it has {', '.join(part.splits)}"
    if source == "hub":
        if dataset_cached(part.dataset, part.config, part.revision) or hub_reachable():
            return None
        return f"the hub is not reachable and {part.dataset} is not in the local cache"
    path = _file(task, source, split, folder)
    if path is None:
        return f"no data folder, give --data or set FAITHBENCH_DATA{_where_from(task, source)}"
    return None if path.is_file() else f"no file {path}{_where_from(task, source)}"


def _where_from(task: Task, source: Source) -> str:
    said = task.folder.get if source == "folder" and task.folder else ""
    return said and f"; {said}"


def _file(task: Task, source: Source, split: str, folder: Path | None) -> Path | None:
    """Return where the file of a split should be, or None without a data folder."""
    if source == "bundled" and task.bundled:
        return Path(__file__).parent / "bundled" / task.name / task.bundled.splits[split]
    root = folder or os.environ.get("FAITHBENCH_DATA")
    return task.folder.file(Path(root).expanduser(), split) if task.folder and root else None


def _is_pinned(task: Task, split: str, path: Path, found: str, allow_changed: bool) -> bool:
    assert task.folder is not None  # the caller has chosen the folder
    stem = task.folder.splits[split]
    expected = task.folder.sha256.get(stem)
    if expected is None or found == expected or allow_changed:
        return found == expected
    raise FaithbenchError(
        f"{path} is not the file task {task.name} was tested with: expected sha256 {expected} "
        f"(of {stem}.jsonl.gz), found {found}; restore it, or accept it with --allow-changed-data"
    )

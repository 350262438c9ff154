"""Rules for every submission: its seeds, the models it may use, the files it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import file_sha256
from faithbench.core.text import readable
from faithbench.data.tasks import Task, load_task, task_names
from faithbench.submissions.entry import Entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.score_files import score_file

SEED, SEEDS = 0, 3
"""The first seed, and the number of seeds for explainers that draw at random."""
PACKAGE = "submission"
"""What records of submissions have in the place of a package."""


def digests_of(folder: Path, entry: Entry, task: str) -> dict[str, str]:
    """Return the digests of the files that a submission's scores depend on, by path."""
    if entry.kind == "attributions":
        names: Sequence[str] = [score_file(folder, task).relative_to(folder).as_posix()]
    else:
        files = files_of(folder)
        names = [name for name in files if name == "explainer.py" or name.startswith("data/")]
    return {name: file_sha256(folder / name) for name in names}


def known_task(name: str) -> Task:
    """Return a task that comes with faithbench; the path of any other task file is refused."""
    if name not in task_names():
        raise unknown("task", readable(name, 60), task_names())
    return load_task(name)


def known_model(task: Task, source: str, name: str | None) -> tuple[str, str | None]:
    """Return name and revision of a model that anyone can get: a bundled one, or the task's.

    Without a name it is the one that the task has for a source of data.
    """
    if name is None:
        if source not in task.models:
            raise FaithbenchError(
                f"task {task.name} names no model for {source} data; name a bundled one"
            )
        return task.models[source].name, task.models[source].revision
    for ref in task.models.values():
        if name == ref.name:
            return ref.name, ref.revision
    if name.startswith("bundled:"):
        return name, None
    others = sorted({ref.name for ref in task.models.values()})
    raise FaithbenchError(
        f"model {name!r:.80} is not one that anyone can get; use bundled:<task>"
        + (f", or the task's own: {', '.join(others)}" if others else "")
    )

"""What holds for every submission: its seeds, the models it may use, the files it stands on."""

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
PACKAGE = "submission"


def digests_of(folder: Path, entry: Entry, task: str) -> dict[str, str]:
    """Digest the files that a submission's scores come from, by their paths."""
    if entry.kind == "attributions":
        names: Sequence[str] = [score_file(folder, task).relative_to(folder).as_posix()]
    else:
        names = [n for n in files_of(folder) if n == "explainer.py" or n.startswith("data/")]
    return {name: file_sha256(folder / name) for name in names}


def known_task(name: str) -> Task:
    """Return one of faithbench's own tasks; a file of a stranger's is none."""
    if name not in task_names():
        raise unknown("task", readable(name, 60), task_names())
    return load_task(name)


def known_model(task: Task, source: str, asked: str | None) -> tuple[str, str | None]:
    """Return name and revision of a model that everybody has: a bundled one, or the task's."""
    if asked is None:
        if source not in task.models:
            raise FaithbenchError(
                f"task {task.name} names no model for {source} data; name a bundled one"
            )
        return task.models[source].name, task.models[source].revision
    for ref in task.models.values():
        if asked == ref.name:
            return ref.name, ref.revision
    if asked.startswith("bundled:"):
        return asked, None
    names = sorted({ref.name for ref in task.models.values()})
    raise FaithbenchError(
        f"model {asked!r:.80} is not one that everybody has; use bundled:<task>"
        + (f", or the task's own: {', '.join(names)}" if names else "")
    )

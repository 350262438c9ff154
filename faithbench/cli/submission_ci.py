"""What CI does with submissions: which ones a change touches, how they do, and who is due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.text import Text

from faithbench.cli.submission_run import run_command, score_command, submissions
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.submissions.review import preview, touched
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.status import NeededRecord, needed_records


def scope_command(paths: Iterable[str], root: Path, existing: bool) -> None:
    """Print the folders of the submissions that changed, or refuse the change."""
    for name in touched(line.rstrip("\n") for line in paths):
        if not existing or (root / name).is_dir():
            print(root / name)


def preview_command(folders: Sequence[str], root: Path, records: Path) -> None:
    """Print the tables that submissions would be in, as markdown."""
    names = [folder.name for folder in submissions(folders, root)]
    for name in names:
        if not (root / name).is_dir():
            raise FaithbenchError(f"no submission {readable(name, 60)} in {root}; give --root")
    print(preview(names, records, root), end="")


def regenerate_command(
    *, root: Path, task: str, limit: int | None, limits: Limits, strict: bool
) -> None:
    """Measure, on bundled data, all submissions that have no record of what they are now."""
    console = Console(highlight=False)
    due, failed = _due(console, root, task, limit)
    work: list[Callable[[], None]] = [
        partial(score_command, folders=[str(one.folder)], root=root, task=one.task, data=None)
        for one in due
        if one.kind == "attributions"
    ]
    if plugins := [str(one.folder) for one in due if one.kind == "plugin"]:
        work.append(
            partial(
                run_command, folders=plugins, root=root, task=task, model=None, data=None,
                source="bundled", split="test", limit=limit, limits=limits, strict=strict,
            )
        )  # fmt: skip
    for measure in work:
        try:
            measure()
        except FaithbenchError as error:
            failed.append(str(error))
    if failed:
        raise FaithbenchError("not all submissions could be measured; see above")


def _due(
    console: Console, root: Path, task: str, limit: int | None
) -> tuple[list[NeededRecord], list[str]]:
    """Return the records that are missing, and what is wrong with unreadable submissions."""
    due, failed = [], []
    for folder in submissions(["all"], root):
        try:
            wanted = list(needed_records(folder, task, limit))
        except FaithbenchError as error:
            failed.append(f"{readable(folder.name, 60)}: {error}")
            console.print(Text(f"failed: {failed[-1]}", style="red"), soft_wrap=True)
            continue
        for one in wanted:
            said = "up to date" if one.current else "to be measured"
            console.print(Text(f"{folder.name}, {one.task}: {said}"), soft_wrap=True)
        due += [one for one in wanted if not one.current]
    return due, failed

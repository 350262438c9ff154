"""The commands that measure submissions: `submission run`, `score` and `regenerate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.options import DataFolder, Limit, ModelName, Source, Split, TaskName
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable

if TYPE_CHECKING:
    from faithbench.run.finish import Outcome
    from faithbench.submissions.entry import Entry
    from faithbench.submissions.sandbox.messages import Confined
    from faithbench.submissions.status import NeededRecord

Folders = Annotated[
    list[str], typer.Argument(help="Folders of submissions, or all.", metavar="FOLDER|all")
]
Root = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of all submissions.")]
Seconds = Annotated[
    int, typer.Option(min=1, metavar="N", help="Stop each submission after N seconds.")
]
Memory = Annotated[
    int, typer.Option(min=256, metavar="N", help="Allow each submission N MB of memory.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Run only where every limit can be enforced.")
]


def run_submissions(
    folders: Folders,
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    split: Split = "test",
    limit: Limit = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    root: Root = Path("submissions"),
) -> None:
    """Run submitted explainers in a sandbox, and write records."""
    from faithbench.cli.display import progress_on
    from faithbench.data.dataset import load_dataset
    from faithbench.submissions.rules import known_task
    from faithbench.submissions.sandbox.confine import Limits

    console = Console()
    the_task = known_task(task)
    wanted = find_submissions(folders, root, "plugin")
    dataset = load_dataset(the_task, source=source, split=split, folder=data, limit=limit)
    with console.status("loading model"):
        from faithbench.submissions.measure import load_setup, run_explainer

        setup = load_setup(dataset, model)
    report_limits = _limits_reporter(console, strict=strict)

    def measure(folder: Path, entry: Entry) -> Sequence[Outcome]:
        with progress_on(console) as progress:
            limits = Limits(seconds, memory)
            return [run_explainer(folder, entry, setup, limits, report_limits, progress)]

    _measure_each(console, wanted, "plugin", measure)


def _limits_reporter(console: Console, *, strict: bool) -> Callable[[Confined], None]:
    """Return a function that prints the limits of a sandbox, once if they are the same for all."""
    printed: list[Confined] = []

    def report(confined: Confined) -> None:
        if printed != [confined]:
            printed[:] = [confined]
            console.print(Text(f"enforced: {', '.join(confined.holds)}"))
            if confined.missing:
                missing = ", ".join(confined.missing)
                console.print(Text(f"NOT enforced here: {missing}", style="bold"))
        if strict and confined.missing:
            raise FaithbenchError("was not run: --strict, and not everything is enforced here")

    return report


def score_submissions(
    folders: Folders,
    task: Annotated[
        str | None,
        typer.Option("--task", "-t", metavar="TASK", help="Measure the scores of this task only."),
    ] = None,
    data: DataFolder = None,
    root: Root = Path("submissions"),
) -> None:
    """Measure submitted attributions, and write records."""
    from faithbench.cli.display import progress_on
    from faithbench.data.dataset import load_dataset
    from faithbench.submissions.rules import known_task
    from faithbench.submissions.score_files import read_scores, score_file

    console = Console()

    def measure(folder: Path, entry: Entry) -> Sequence[Outcome]:
        files = [file for file in entry.scores if task in (None, file.task)]
        if not files:
            tasks = ", ".join(file.task for file in entry.scores)
            raise FaithbenchError(f"has no scores of task {task!r}, only of {tasks}")
        outcomes = []
        for file in files:
            count = len(read_scores(score_file(folder, file.task)))
            dataset = load_dataset(
                known_task(file.task),
                source=file.source,
                split=file.split,
                folder=data,
                limit=max(1, count),
            )
            with progress_on(console, "loading model") as progress:
                from faithbench.submissions.measure import load_setup, score_attributions

                setup = load_setup(dataset, file.model)
                outcomes.append(score_attributions(folder, entry, setup, progress))
        return outcomes

    wanted = find_submissions(folders, root, "attributions")
    _measure_each(console, wanted, "attributions", measure)


def regenerate_submissions(
    task: Annotated[
        str,
        typer.Option("--task", "-t", metavar="TASK", help="Task to run submitted explainers on."),
    ] = "sst2",
    limit: Limit = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    root: Root = Path("submissions"),
) -> None:
    """Measure submissions whose records are not up to date.

    Uses the bundled data and models.
    """
    due, failures = _find_due(Console(highlight=False), root, task, limit)
    commands: list[Callable[[], None]] = [
        partial(score_submissions, folders=[str(needed.folder)], root=root, task=needed.task)
        for needed in due
        if needed.kind == "attributions"
    ]
    if plugins := [str(needed.folder) for needed in due if needed.kind == "plugin"]:
        commands.append(
            partial(
                run_submissions,
                folders=plugins,
                task=task,
                source="bundled",
                limit=limit,
                seconds=seconds,
                memory=memory,
                strict=strict,
                root=root,
            )
        )
    for command in commands:
        try:
            command()
        except FaithbenchError as error:
            failures.append(str(error))
    if failures:
        raise FaithbenchError("not all submissions could be measured; see above")


def _find_due(
    console: Console, root: Path, task: str, limit: int | None
) -> tuple[list[NeededRecord], list[str]]:
    """Return the records that are missing, and what is wrong with unreadable submissions."""
    from faithbench.submissions.status import needed_records

    due: list[NeededRecord] = []
    failures = []
    for folder in find_submissions(["all"], root):
        try:
            records = list(needed_records(folder, task, limit))
        except FaithbenchError as error:
            failures.append(f"{readable(folder.name, 60)}: {error}")
            console.print(Text(f"failed: {failures[-1]}", style="red"), soft_wrap=True)
            continue
        for record in records:
            state = "up to date" if record.current else "to be measured"
            console.print(Text(f"{folder.name}, {record.task}: {state}"), soft_wrap=True)
        due += [record for record in records if not record.current]
    return due, failures


def find_submissions(folders: Sequence[str], root: Path, kind: str | None = None) -> list[Path]:
    """Return the folders that are named; `all` stands for those below the root, of one kind."""
    if list(folders) != ["all"]:
        # Only "." is resolved: elsewhere a link must be seen as one.
        return [path if path.name else path.resolve() for path in map(Path, folders)]
    if not root.is_dir():
        raise FaithbenchError(f"no folder {root}; give --root, or the submissions' own folders")
    below = sorted(path for path in root.iterdir() if path.is_dir() or path.is_symlink())
    return [path for path in below if kind is None or _is_of_kind(path, kind)]


def _is_of_kind(folder: Path, kind: str) -> bool:
    """Return whether an entry is of a kind, or cannot be read: the latter is reported later."""
    from faithbench.submissions.entry import read_entry

    try:
        return read_entry(folder).kind == kind
    except FaithbenchError:
        return True


def _checked_entry(folder: Path, kind: str) -> Entry:
    """Read an entry, and refuse one that this command cannot measure."""
    from faithbench.submissions.entry import read_entry
    from faithbench.submissions.layout import files_of

    files, entry = files_of(folder), read_entry(folder)
    if entry.kind != kind:
        verb = "run" if entry.kind == "plugin" else "score"
        raise FaithbenchError(
            f"is of kind {entry.kind!r}; use `faithbench submission {verb}` for it"
        )
    if kind == "plugin" and "explainer.py" not in files:
        raise FaithbenchError("has no explainer.py; `faithbench submission new` writes one")
    return entry


def _measure_each(
    console: Console,
    folders: Sequence[Path],
    kind: str,
    measure: Callable[[Path, Entry], Sequence[Outcome]],
) -> None:
    """Measure submissions one after the other; a failing one is one line, and does not block."""
    from faithbench.run.tables import caption, results_tables

    failed = 0
    for folder in folders:
        try:
            outcomes = measure(folder, _checked_entry(folder, kind))
        except FaithbenchError as error:
            failed += 1
            message = str(error)
            if not message.startswith("submission "):
                message = f"submission {readable(folder.name, 60)} {message}"
            console.print(Text(f"failed: {message}", style="red"), soft_wrap=True)
            continue
        for outcome in outcomes:
            for table in results_tables([(outcome.selected.label, outcome.record)]):
                console.print(table)
            console.print(caption(outcome.record), style="dim", highlight=False)
            console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise FaithbenchError(f"{failed} of {len(folders)} submissions failed; see above")

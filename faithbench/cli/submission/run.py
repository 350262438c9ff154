"""The commands that measure submissions as their authors do: `submission run` and `score`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import WHAT
from faithbench.cli.options import DataFolder, Limit, ModelName, Source, Split, TaskName
from faithbench.cli.submission.options import (
    AllowUnconfined,
    Folders,
    Memory,
    RecordsOfRoot,
    Root,
    Seconds,
    Strict,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable

if TYPE_CHECKING:
    from faithbench.data.tasks import Task
    from faithbench.run.finish import Outcome
    from faithbench.submissions.entry import Entry
    from faithbench.submissions.sandbox.messages import Confined


@dataclass(frozen=True)
class Measured:
    """The records that were written, and how many of how many submissions failed."""

    paths: tuple[Path, ...]
    failed: int
    count: int

    def complain(self) -> None:
        """Raise if a submission failed."""
        if self.failed:
            raise FaithbenchError(f"{self.failed} of {self.count} submissions failed; see above")


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
    allow_unconfined: AllowUnconfined = False,
    records: RecordsOfRoot = None,
    root: Root = Path("submissions"),
) -> None:
    """Run submitted explainers in a sandbox, and write records.

    Without --limit on the examples of the board's table, if it has one of these data and model.
    """
    run_plugins(
        folders,
        task,
        model=model,
        data=data,
        source=source,
        split=split,
        limit=limit,
        seconds=seconds,
        memory=memory,
        strict=strict,
        allow_unconfined=allow_unconfined,
        board=board_records(records, root),
        root=root,
    ).complain()


def board_records(records: Path | None, root: Path) -> Path | None:
    """Return the folder of the board's records: the one named, or that beside the root, if any."""
    from faithbench.records.own_examples import RECORDS

    if records is not None and not records.is_dir():
        raise FaithbenchError(f"no records folder {records}; check --records")
    beside = root.parent / RECORDS
    return records or (beside if beside.is_dir() else None)


def run_plugins(
    folders: Sequence[str],
    task: str,
    *,
    model: str | None,
    data: Path | None,
    source: str,
    split: str,
    limit: int | None,
    seconds: int,
    memory: int,
    strict: bool,
    allow_unconfined: bool,
    board: Path | None,
    root: Path,
) -> Measured:
    """Run the code of submissions, each in its sandbox, and write records."""
    from faithbench.cli.display import progress_on
    from faithbench.data.dataset import load_dataset
    from faithbench.records.own_examples import unlike
    from faithbench.submissions.rules import known_task
    from faithbench.submissions.sandbox.confine import Limits

    console = Console()
    the_task = known_task(task)
    wanted = find_submissions(folders, root, "plugin")
    dataset = load_dataset(the_task, source=source, split=split, folder=data, limit=limit)
    own = board_examples(board, the_task, dataset.source, split, model)
    if own and limit is None:
        dataset = load_dataset(
            the_task, source=dataset.source, split=split, folder=data, limit=len(own)
        )
    if problem := unlike([example.id for example in dataset.examples], own):
        console.print(Text(f"a trial: {problem}; leave --limit out to submit"), soft_wrap=True)
    with console.status("loading model"):
        from faithbench.submissions.measure import load_setup, run_explainer

        setup = load_setup(dataset, model)
    report_limits = limits_reporter(console, strict=strict, allow_unconfined=allow_unconfined)

    def measure(folder: Path, entry: Entry) -> Sequence[Outcome]:
        with progress_on(console) as progress:
            limits = Limits(seconds, memory)
            return [run_explainer(folder, entry, setup, limits, report_limits, progress)]

    return _measure_each(console, wanted, "plugin", measure)


def board_examples(
    board: Path | None, task: Task, source: str, split: str, model: str | None = None
) -> tuple[str, ...]:
    """Return the examples of the board's own table of these data and model, if it has one."""
    from faithbench.records.own_examples import MeasuredOn, own_examples
    from faithbench.submissions.rules import known_model

    if board is None:
        return ()
    name, _ = known_model(task, source, model)
    return own_examples(board, MeasuredOn(task.name, source, split, name))


def limits_reporter(
    console: Console, *, strict: bool, allow_unconfined: bool
) -> Callable[[Confined], None]:
    """Return a function that prints the limits of a sandbox, once if they are the same for all.

    It raises, which ends the sandbox before any untrusted code runs, where too little holds.
    """
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
        if confined.needed and not allow_unconfined:
            raise FaithbenchError(
                f"was not run: not enforced here: {'; '.join(confined.needed)}; use Linux with "
                "Landlock, or give --allow-unconfined if you trust the code"
            )

    return report


def score_submissions(
    folders: Folders,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            "-t",
            metavar="TASK",
            help="Measure the scores of this task only.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data: DataFolder = None,
    root: Root = Path("submissions"),
) -> None:
    """Measure submitted attributions, and write records."""
    score_files(folders, task, data=data, root=root).complain()


def score_files(
    folders: Sequence[str], task: str | None, *, data: Path | None, root: Path
) -> Measured:
    """Measure the attributions of submissions, and write records."""
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
    return _measure_each(console, wanted, "attributions", measure)


def named(folder: Path, error: FaithbenchError) -> str:
    """Return what is wrong with a submission, as a sentence that begins with its name."""
    message = str(error)
    known = message.startswith("submission ")
    return message if known else f"submission {readable(folder.name, 60)} {message}"


def print_failure(console: Console, line: str) -> None:
    """Print what is wrong with one submission, in a line."""
    console.print(Text(f"failed: {line}", style="red"), soft_wrap=True)


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


def checked_entry(folder: Path, kind: str) -> Entry:
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
) -> Measured:
    """Measure submissions one after the other; a failing one is one line, and does not block."""
    from faithbench.core.files import sweep_below
    from faithbench.run.tables import caption, results_tables

    failed, paths = 0, []
    if not folders:
        console.print(f"nothing to measure: no submission is of kind {kind}")
    for folder in folders:
        if not folder.is_symlink():
            sweep_below(folder / "records")  # a stray, for which the submission would be refused
        try:
            outcomes = measure(folder, checked_entry(folder, kind))
        except FaithbenchError as error:
            failed += 1
            print_failure(console, named(folder, error))
            continue
        for outcome in outcomes:
            paths.append(outcome.path)
            for table in results_tables([(outcome.selected.label, outcome.record)]):
                console.print(table)
            console.print(caption(outcome.record), style="dim", highlight=False)
            console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
    return Measured(tuple(paths), failed, len(folders))

"""What `faithbench submission` does once its options are parsed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from faithbench.cli.display import progress_on
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.data.dataset import load_dataset
from faithbench.run.tables import caption, results_tables
from faithbench.submissions.entry import Entry, read_entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.rules import known_task
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Confined
from faithbench.submissions.score_files import read_scores, score_file

if TYPE_CHECKING:
    from faithbench.run.finish import Outcome


MOST_FAULTS = 20
Work = Callable[[Path, Entry], "Sequence[Outcome]"]


def new_command(name: str, kind: str, root: Path) -> None:
    """Write a new submission, and say what to do next."""
    from faithbench.submissions.scaffold import new_submission

    folder = new_submission(root, name, kind)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"written: {folder}")
    then = f"run {folder} --task sst2" if kind == "plugin" else f"score {folder}"
    if kind == "plugin":
        console.print(f"test it:     python -m pytest {folder}")
    console.print(f"measure it:  faithbench submission {then}")
    console.print(f"check it:    faithbench submission check {folder}")


def run_command(
    *,
    folders: Sequence[str],
    root: Path,
    task: str,
    model: str | None,
    data: Path | None,
    source: str,
    split: str,
    limit: int | None,
    limits: Limits,
    strict: bool,
) -> None:
    """Run explainers of others on a task, each apart, and write their records."""
    console = Console()
    the_task = known_task(task)
    wanted = submissions(folders, root, "plugin")
    dataset = load_dataset(the_task, source=source, split=split, folder=data, limit=limit)
    with console.status("loading model"):
        from faithbench.submissions.measure import load_setup, run_explainer

        setup = load_setup(dataset, model)

    said: list[Confined] = []

    def say(confined: Confined) -> None:
        if said != [confined]:  # the same for all submissions is said once
            said[:] = [confined]
            console.print(Text(f"enforced: {', '.join(confined.holds)}"))
            if confined.missing:
                missing = ", ".join(confined.missing)
                console.print(Text(f"NOT enforced here: {missing}", style="bold"))
        if strict and confined.missing:
            raise FaithbenchError("was not run: --strict, and not everything is enforced here")

    def work(folder: Path, entry: Entry) -> Sequence[Outcome]:
        with progress_on(console) as progress:
            return [run_explainer(folder, entry, setup, limits, say, progress)]

    _each(console, wanted, "plugin", work)


def score_command(
    *, folders: Sequence[str], root: Path, task: str | None, data: Path | None
) -> None:
    """Measure files of attributions, and write their records."""
    console = Console()

    def work(folder: Path, entry: Entry) -> Sequence[Outcome]:
        from faithbench.submissions.measure import load_setup, score_attributions

        files = [one for one in entry.scores if task in (None, one.task)]
        if not files:
            there = ", ".join(one.task for one in entry.scores)
            raise FaithbenchError(f"has no scores of task {task!r}, only of {there}")
        found = []
        for one in files:
            the_task = known_task(one.task)
            count = len(read_scores(score_file(folder, one.task)))
            dataset = load_dataset(
                the_task, source=one.source, split=one.split, folder=data, limit=max(1, count)
            )
            setup = load_setup(dataset, one.model)
            with progress_on(console) as progress:
                found.append(score_attributions(folder, entry, setup, progress))
        return found

    _each(console, submissions(folders, root, "attributions"), "attributions", work)


def check_command(
    *, folders: Sequence[str], root: Path, data: Path | None, sample: int, no_model: bool
) -> None:
    """Check submissions; each fault is one line."""
    from faithbench.core.files import temporary_folder
    from faithbench.submissions.check import Checks, check_submission

    console = Console(highlight=False, soft_wrap=True)

    wanted = submissions(folders, root)
    failed = 0
    with temporary_folder() as cache:
        checks = Checks(data, cache, sample, with_model=not no_model)
        for folder in wanted:
            found = check_submission(folder, checks)
            for fault in found.faults[:MOST_FAULTS]:
                console.print(Text(f"{readable(folder.name, 60)}: {fault}", style="red"))
            if len(found.faults) > MOST_FAULTS:
                console.print(Text(f"... and {len(found.faults) - MOST_FAULTS} more faults"))
            failed += bool(found.faults)
            if not found.faults:
                count = f"{found.records} record{'' if found.records == 1 else 's'}"
                console.print(Text(f"{folder.name}: fine, {count}"))
    if no_model:
        console.print("not checked: what needs the model (--no-model)")
    if failed:
        raise FaithbenchError(f"{failed} of {len(wanted)} submissions have faults; see above")


def submissions(folders: Sequence[str], root: Path, kind: str | None = None) -> list[Path]:
    """Return the folders that are meant; `all` are those below the root, of one kind."""
    if list(folders) != ["all"]:
        # Only "." is resolved: elsewhere a link must be seen as one.
        return [path if path.name else path.resolve() for path in map(Path, folders)]
    if not root.is_dir():
        raise FaithbenchError(f"no folder {root}; give --root, or the submissions' own folders")
    there = sorted(path for path in root.iterdir() if path.is_dir() or path.is_symlink())
    return [path for path in there if kind is None or _is_of(path, kind)]


def _entry(folder: Path, kind: str) -> Entry:
    """Read an entry, and see that its submission has what is to be measured."""
    files, entry = files_of(folder), read_entry(folder)
    if entry.kind != kind:
        verb = "run" if entry.kind == "plugin" else "score"
        raise FaithbenchError(
            f"is of kind {entry.kind!r}; use `faithbench submission {verb}` for it"
        )
    if kind == "plugin" and "explainer.py" not in files:
        raise FaithbenchError("has no explainer.py; `faithbench submission new` writes one")
    return entry


def _is_of(folder: Path, kind: str) -> bool:
    """Say whether an entry is of a kind; one that cannot be read is, and is complained of."""
    try:
        return read_entry(folder).kind == kind
    except FaithbenchError:
        return True


def _each(console: Console, folders: Sequence[Path], kind: str, work: Work) -> None:
    """Do the same for each submission; what fails is one line, and the next one follows."""
    failed = 0
    for folder in folders:
        try:
            outcomes = work(folder, _entry(folder, kind))
        except FaithbenchError as error:
            failed += 1
            said = str(error)
            if not said.startswith("submission "):
                said = f"submission {readable(folder.name, 60)} {said}"
            console.print(Text(f"failed: {said}", style="red"), soft_wrap=True)
            continue
        for outcome in outcomes:
            for table in results_tables([(outcome.selected.label, outcome.record)]):
                console.print(table)
            console.print(caption(outcome.record), style="dim", highlight=False)
            console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
    if failed:
        raise FaithbenchError(f"{failed} of {len(folders)} submissions failed; see above")

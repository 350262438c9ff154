"""The command `submission regenerate`: measure what was not measured here, record what passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import WHAT
from faithbench.cli.options import PASSED, DataFolder, Limit
from faithbench.cli.submission.options import (
    AllowUnconfined,
    Memory,
    PassedOfRoot,
    RecordsOfRoot,
    Root,
    Seconds,
    Strict,
)
from faithbench.cli.submission.run import (
    board_examples,
    board_records,
    find_submissions,
    limits_reporter,
    named,
    print_failure,
    run_plugins,
    score_files,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable

if TYPE_CHECKING:
    from faithbench.records.passed import PassedCheck
    from faithbench.submissions.sandbox.messages import Confined
    from faithbench.submissions.status import NeededRecord


def regenerate_submissions(
    task: Annotated[
        str,
        typer.Option(
            "--task",
            "-t",
            metavar="TASK",
            help="Task to run submitted explainers on.",
            rich_help_panel=WHAT,
        ),
    ] = "sst2",
    limit: Limit = None,
    data: DataFolder = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    allow_unconfined: AllowUnconfined = False,
    passed: PassedOfRoot = None,
    records: RecordsOfRoot = None,
    root: Root = Path("submissions"),
) -> None:
    """Measure what was not measured here yet.

    Submissions that then pass their check are recorded as such, explainers only if they do not
    fall behind on held-out sentences. Uses the bundled data and models, and other data where
    --data has them. Explainers run on the examples of the board's table, unless --limit says
    otherwise.
    """
    from faithbench.records.passed import read_passed
    from faithbench.submissions.rules import known_task

    console = Console(highlight=False)
    # Beside the root: submissions elsewhere must not push these out of the repository's file.
    file = passed or root.parent / PASSED
    former = read_passed(file)
    board = board_records(records, root)
    own = board_examples(board, known_task(task), "bundled", "test") if limit is None else ()
    limit = len(own) or limit
    needed, failed = _find_needed(console, root, task, limit, data, former)
    measured: dict[Path, set[str]] = {}
    fresh: list[Path] = []
    for record in needed:
        paths = measured.setdefault(record.folder, set())
        if record.current:
            paths.update(former[record.folder.name].records)
            continue
        folders = [str(record.folder)]
        if record.kind == "attributions":
            outcome = score_files(folders, record.task, data=data, root=root)
        else:
            outcome = run_plugins(
                folders,
                record.task,
                model=record.model,
                data=data,
                source=record.source,
                split=record.split,
                limit=record.limit,
                seconds=seconds,
                memory=memory,
                strict=strict,
                allow_unconfined=allow_unconfined,
                board=board,
                root=root,
            )
        paths.update(path.relative_to(record.folder).as_posix() for path in outcome.paths)
        if outcome.failed:
            failed.add(record.folder)
        elif record.kind == "plugin":
            fresh.append(record.folder)
    report_limits = limits_reporter(console, strict=strict, allow_unconfined=allow_unconfined)
    asked = [folder for folder in dict.fromkeys(fresh) if folder not in failed]
    failed |= _behind(console, asked, task, data, board, (seconds, memory), report_limits)
    whole = {folder: paths for folder, paths in measured.items() if folder not in failed}
    present = {folder.name for folder in find_submissions(["all"], root)}
    kept = {name: check for name, check in former.items() if name in present}
    failed |= _record_passed(console, whole, file, former, kept, data, board)
    if failed:
        raise FaithbenchError("not all submissions could be measured; see above")


def _find_needed(
    console: Console,
    root: Path,
    task: str,
    limit: int | None,
    data: Path | None,
    passed: Mapping[str, PassedCheck],
) -> tuple[list[NeededRecord], set[Path]]:
    """Return the records that submissions should have, and the submissions that are unreadable."""
    from faithbench.submissions.status import needed_records

    needed: list[NeededRecord] = []
    failed = set()
    for folder in find_submissions(["all"], root):
        try:
            records = list(needed_records(folder, task, limit, data, passed))
        except FaithbenchError as error:
            failed.add(folder)
            print_failure(console, f"{readable(folder.name, 60)}: {error}")
            continue
        for record in records:
            state = "up to date" if record.current else "to be measured"
            console.print(Text(f"{folder.name}, {record.task}: {state}"), soft_wrap=True)
        needed += records
    return needed, failed


def _behind(
    console: Console,
    folders: Sequence[Path],
    task: str,
    data: Path | None,
    board: Path | None,
    limits: tuple[int, int],
    report_limits: Callable[[Confined], None],
) -> set[Path]:
    """Return the explainers that fall behind their new records on other sentences."""
    from faithbench.cli.submission.held_out import SENTENCES, ask, draw_trial, in_words
    from faithbench.submissions.rules import known_task
    from faithbench.submissions.sandbox.confine import Limits

    if not folders:
        return set()
    in_folder = known_task(task).folder
    # A folder may hold other tasks only.
    there = data if data and in_folder and (data / in_folder.name).is_dir() else None
    trial = draw_trial(console, task, SENTENCES, None, there, board)
    behind = set()
    for folder in folders:
        try:
            held = ask(console, folder, trial, Limits(*limits), report_limits)
        except FaithbenchError as error:
            behind.add(folder)
            print_failure(console, named(folder, error))
            continue
        line = f"{folder.name}: {in_words(held)}"
        if held.keeps:
            console.print(Text(line), soft_wrap=True)
        else:
            behind.add(folder)
            print_failure(console, line)
    return behind


def _record_passed(
    console: Console,
    measured: Mapping[Path, Collection[str]],
    file: Path,
    former: Mapping[str, PassedCheck],
    kept: Mapping[str, PassedCheck],
    data: Path | None,
    board: Path | None,
) -> set[Path]:
    """Check what was measured, record what passes, and return the submissions that do not."""
    from faithbench.core.files import temporary_folder
    from faithbench.records.passed import write_passed
    from faithbench.submissions.check import Checks
    from faithbench.submissions.status import passed_check

    passed, failed = dict(kept), set()
    with temporary_folder() as cache:
        # Without the model: these very records were measured with it just now, or before.
        checks = Checks(data, cache, board=board)
        for folder, paths in measured.items():
            try:
                passed[folder.name] = passed_check(folder, paths, checks)
            except FaithbenchError as error:
                failed.add(folder)
                passed.pop(folder.name, None)
                print_failure(console, named(folder, error))
    if passed != former:
        write_passed(file, passed)
    return failed

"""The command `submission held-out`: is an explainer as good on sentences the board has not?"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import WHAT
from faithbench.cli.options import DataFolder
from faithbench.cli.submission.options import (
    AllowUnconfined,
    Folders,
    Memory,
    RecordsOfRoot,
    Root,
    Seconds,
    Strict,
)
from faithbench.cli.submission.run import (
    board_examples,
    board_records,
    checked_entry,
    find_submissions,
    limits_reporter,
    named,
    print_failure,
)
from faithbench.core.errors import FaithbenchError

if TYPE_CHECKING:
    from faithbench.submissions.held_out import Held, Trial
    from faithbench.submissions.sandbox.confine import Limits
    from faithbench.submissions.sandbox.messages import Confined

SENTENCES = 80
"""Number of held-out sentences, if there are so many."""


def ask_held_out(
    folders: Folders,
    task: Annotated[
        str,
        typer.Option(
            "--task", "-t", metavar="TASK", help="Task to take sentences of.", rich_help_panel=WHAT
        ),
    ] = "sst2",
    sentences: Annotated[
        int,
        typer.Option(
            min=20,
            max=1000,
            metavar="N",
            help="Number of held-out sentences.",
            rich_help_panel=WHAT,
        ),
    ] = SENTENCES,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Repeat a trial; by default each one is new.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data: DataFolder = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    allow_unconfined: AllowUnconfined = False,
    records: RecordsOfRoot = None,
    root: Root = Path("submissions"),
) -> None:
    """Measure submitted explainers on other sentences, too.

    These are of --data, or else spliced of bundled ones, anew for each trial. An explainer passes
    if it is better there than random orders (p < .01), and does not stand lower beside
    leave-one-out than in its record (p >= .001).
    """
    from faithbench.submissions.sandbox.confine import Limits

    console = Console(highlight=False, soft_wrap=True)
    wanted = find_submissions(folders, root, "plugin")
    board = board_records(records, root)
    report_limits = limits_reporter(console, strict=strict, allow_unconfined=allow_unconfined)
    ready = []
    for folder in wanted:  # before a minute in which others are measured
        try:
            check_ready(folder, task)
            ready.append(folder)
        except FaithbenchError as error:
            print_failure(console, named(folder, error))
    passed = 0
    if ready:
        trial = draw_trial(console, task, sentences, seed, data, board)
        limits = Limits(seconds, memory)
        for folder in ready:
            try:
                held = ask(console, folder, trial, limits, report_limits)
            except FaithbenchError as error:
                print_failure(console, named(folder, error))
                continue
            passed += held.keeps and held.gains
            console.print(Text(f"{folder.name}: {in_words(held)}"))
    if failed := len(wanted) - passed:
        raise FaithbenchError(f"{failed} of {len(wanted)} submissions did not pass; see above")


def check_ready(folder: Path, task: str) -> None:
    """Raise if a submission cannot be asked: it has no code, or no record to compare with."""
    from faithbench.submissions.held_out import recorded_aopc
    from faithbench.submissions.rules import known_task

    recorded_aopc(folder, checked_entry(folder, "plugin"), known_task(task))


def draw_trial(
    console: Console,
    task: str,
    sentences: int,
    seed: int | None,
    data: Path | None,
    board: Path | None,
) -> Trial:
    """Draw held-out sentences, measure what others reach on them, and say what they are."""
    from faithbench.cli.display import progress_on
    from faithbench.submissions.rules import known_task

    the_task = known_task(task)
    chosen = secrets.randbelow(1 << 31) if seed is None else seed
    own = board_examples(board, the_task, "bundled", "test")
    with progress_on(console, "loading model") as progress:
        from faithbench.submissions.held_out import new_trial

        trial = new_trial(the_task, own, data, sentences, chosen, progress)
    drawn = len(trial.setup.encodings)
    origin = "spliced of bundled ones" if data is None else f"of {the_task.name} in {data}"
    console.print(Text(f"{drawn} held-out sentences {origin} (--seed {chosen})"))
    return trial


def ask(
    console: Console,
    folder: Path,
    trial: Trial,
    limits: Limits,
    report_limits: Callable[[Confined], None],
) -> Held:
    """Ask one submission in its sandbox."""
    from faithbench.cli.display import progress_on
    from faithbench.submissions.held_out import held_out

    entry = checked_entry(folder, "plugin")
    with progress_on(console) as progress:
        return held_out(folder, entry, trial, limits, report_limits, progress)


def in_words(held: Held) -> str:
    """Say both gains and the verdict in a line."""
    verdict = "passes"
    if not held.keeps:
        verdict = f"falls behind on held-out sentences (p {held.p_lower:.1g})"
    elif not held.gains:
        verdict = f"no gain on held-out sentences (p {held.p_gain:.2f})"
    return f"gain {held.recorded:+.3f} in its record, {held.held_out:+.3f} held out: {verdict}"

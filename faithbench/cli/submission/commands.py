"""The commands of `faithbench submission` that measure nothing, and the group of them all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import DATA, WHAT, Application
from faithbench.cli.options import PASSED, Commands, DataFolder, Passed
from faithbench.cli.submission.held_out import ask_held_out
from faithbench.cli.submission.options import Folders, RecordsOfRoot, Root
from faithbench.cli.submission.planted import plant_words
from faithbench.cli.submission.regenerate import regenerate_submissions
from faithbench.cli.submission.run import (
    board_examples,
    board_records,
    find_submissions,
    run_submissions,
    score_submissions,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable

SECRET = "FAITHBENCH_CHECK_SECRET"
"""The variable that decides, with the record, which examples `check` measures again."""
MOST_FAULTS = 20
"""Number of faults shown of one submission, at most."""


def start_submission(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")
    ],
    kind: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="What you submit: plugin (code) or attributions.",
            rich_help_panel=WHAT,
        ),
    ] = "plugin",
    records: RecordsOfRoot = None,
    root: Root = Path("submissions"),
) -> None:
    """Start a submission: a folder with all files to fill in."""
    from faithbench.submissions.rules import known_task
    from faithbench.submissions.scaffold import TASK, new_submission

    own = board_examples(board_records(records, root), known_task(TASK), "bundled", "test")
    folder = new_submission(root, name, kind, own)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"written: {folder}")
    if kind == "attributions":
        which = f"the {len(own)} of the board's table" if own else "all bundled ones: no board here"
        console.print(f"examples:    {which}")
    command = f"run {folder} --task sst2" if kind == "plugin" else f"score {folder}"
    if kind == "plugin":
        console.print(f"test it:     python -m pytest {folder}")
    console.print(f"measure it:  faithbench submission {command}")
    console.print(f"check it:    faithbench submission check {folder}")


def check_submissions(
    folders: Folders,
    data: DataFolder = None,
    sample: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Run the model again on at most N examples.",
            rich_help_panel=WHAT,
        ),
    ] = 8,
    no_model: Annotated[
        bool,
        typer.Option(
            "--no-model", help="Leave out the checks that need the model.", rich_help_panel=WHAT
        ),
    ] = False,
    records: RecordsOfRoot = None,
    root: Root = Path("submissions"),
) -> None:
    """Check files, names, examples and values; each fault is a line."""
    from faithbench.core.files import temporary_folder
    from faithbench.submissions.check import Checks, check_submission

    console = Console(highlight=False, soft_wrap=True)
    wanted = find_submissions(folders, root)
    board = board_records(records, root)
    failed = 0
    with temporary_folder() as cache:
        secret = os.environ.get(SECRET, "")
        checks = Checks(data, cache, sample, with_model=not no_model, secret=secret, board=board)
        for folder in wanted:
            checked = check_submission(folder, checks)
            for fault in checked.faults[:MOST_FAULTS]:
                console.print(Text(f"{readable(folder.name, 60)}: {fault}", style="red"))
            if len(checked.faults) > MOST_FAULTS:
                console.print(Text(f"... and {len(checked.faults) - MOST_FAULTS} more faults"))
            if checked.faults:
                failed += 1
            else:
                count = f"{checked.records} record{'' if checked.records == 1 else 's'}"
                console.print(Text(f"{folder.name}: fine, {count}"))
    if no_model:
        console.print("not checked: what needs the model (--no-model)")
    if board is None:
        console.print("not checked: whether the examples are the board's (--records)")
    if failed:
        raise FaithbenchError(f"{failed} of {len(wanted)} submissions have faults; see above")


def preview_submissions(
    folders: Folders,
    records: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Folder of the leaderboard's records.", rich_help_panel=DATA
        ),
    ] = Path("leaderboard/records"),
    passed: Passed = PASSED,
    root: Root = Path("submissions"),
) -> None:
    """Print the leaderboard's tables with submissions, as markdown."""
    from faithbench.submissions.review import preview

    names = [folder.name for folder in find_submissions(folders, root)]
    for name in names:
        if not (root / name).is_dir():
            raise FaithbenchError(f"no submission {readable(name, 60)} in {root}; give --root")
    print(preview(names, records, root, passed), end="")


def print_scope(
    existing: Annotated[
        bool,
        typer.Option(
            "--existing", help="Leave out submissions that were removed.", rich_help_panel=WHAT
        ),
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Print the submissions that a change touches.

    Reads what `git diff --raw -z --no-renames` prints from standard input. Refused are links,
    what belongs to no submission, and a change of submissions together with other files.
    """
    from faithbench.submissions.review import changed_paths, touched

    for name in touched(changed_paths(sys.stdin.buffer.read())):
        if not existing or (root / name).is_dir():
            print(root / name)


submission_app = Application(
    cls=Commands, help="Submit an explainer or attributions of your own.", no_args_is_help=True
)
submission_app.command("new")(start_submission)
submission_app.command("run")(run_submissions)
submission_app.command("score")(score_submissions)
submission_app.command("check")(check_submissions)
submission_app.command("regenerate")(regenerate_submissions)
submission_app.command("planted")(plant_words)
submission_app.command("held-out")(ask_held_out)
submission_app.command("preview")(preview_submissions)
submission_app.command("scope")(print_scope)

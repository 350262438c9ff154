"""The commands of `faithbench submission` that measure nothing, and the group of them all."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.options import Commands, DataFolder
from faithbench.cli.submission_run import (
    Folders,
    Root,
    find_submissions,
    regenerate_submissions,
    run_submissions,
    score_submissions,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable

MOST_FAULTS = 20
"""Number of faults shown of one submission, at most."""


def start_submission(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")
    ],
    kind: Annotated[
        str,
        typer.Option(metavar="KIND", help="What you submit: plugin (code) or attributions."),
    ] = "plugin",
    root: Root = Path("submissions"),
) -> None:
    """Start a submission: a folder with all files to fill in."""
    from faithbench.submissions.scaffold import new_submission

    folder = new_submission(root, name, kind)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"written: {folder}")
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
        typer.Option(min=0, metavar="N", help="Run the model again on at most N examples."),
    ] = 8,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Leave out the checks that need the model.")
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Check files, names, sums and values; each fault is one line."""
    from faithbench.core.files import temporary_folder
    from faithbench.submissions.check import Checks, check_submission

    console = Console(highlight=False, soft_wrap=True)
    wanted = find_submissions(folders, root)
    failed = 0
    with temporary_folder() as cache:
        checks = Checks(data, cache, sample, with_model=not no_model)
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
    if failed:
        raise FaithbenchError(f"{failed} of {len(wanted)} submissions have faults; see above")


def preview_submissions(
    folders: Folders,
    records: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder of the leaderboard's records.")
    ] = Path("leaderboard/records"),
    root: Root = Path("submissions"),
) -> None:
    """Print the leaderboard's tables with submissions, as markdown."""
    from faithbench.submissions.review import preview

    names = [folder.name for folder in find_submissions(folders, root)]
    for name in names:
        if not (root / name).is_dir():
            raise FaithbenchError(f"no submission {readable(name, 60)} in {root}; give --root")
    print(preview(names, records, root), end="")


def print_scope(
    existing: Annotated[
        bool, typer.Option("--existing", help="Leave out submissions that were removed.")
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Print the submissions that a change touches.

    Reads the paths of changed files from standard input, one per line. A change of submissions
    together with other files is refused.
    """
    from faithbench.submissions.review import touched

    for name in touched(line.rstrip("\n") for line in sys.stdin):
        if not existing or (root / name).is_dir():
            print(root / name)


submission_app = typer.Typer(
    cls=Commands, help="Submit an explainer or attributions of your own.", no_args_is_help=True
)
submission_app.command("new")(start_submission)
submission_app.command("run")(run_submissions)
submission_app.command("score")(score_submissions)
submission_app.command("check")(check_submissions)
submission_app.command("regenerate")(regenerate_submissions)
submission_app.command("preview")(preview_submissions)
submission_app.command("scope")(print_scope)

"""The commands `leaderboard run`, `complete`, `publish`, `build` and `check`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from faithbench.cli.options import Commands, DataFolder, Jobs, Results
from faithbench.core.errors import FaithbenchError

leaderboard_app = typer.Typer(
    cls=Commands,
    help="Turn records into tables, rankings and pages.",
    no_args_is_help=True,
)

Records = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the published records.")]
Submissions = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Folder of the submissions, with their records.")
]
Out = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the leaderboard's files.")]


@leaderboard_app.command("run")
def run_leaderboard(
    plan: Annotated[
        Path, typer.Option(metavar="FILE", help="File that lists the runs of the leaderboard.")
    ] = Path("leaderboard/plan.toml"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="NAME", help="Name of one run of the plan; can be repeated."
        ),
    ] = None,
    data: DataFolder = None,
    jobs: Jobs = None,
    results: Results = Path("results/leaderboard"),
    records: Records = Path("leaderboard/records"),
) -> None:
    """Run what the plan lists and is not published yet.

    A run that was stopped continues where it was.
    """
    from faithbench.cli.display import progress_on

    console = Console(highlight=False)
    with progress_on(console, f"reading {plan}") as progress:
        from faithbench.leaderboard.plan import read_plan, run_plan

        run_plan(
            read_plan(plan),
            data=data,
            results=results,
            records=records,
            only=tuple(only or ()),
            jobs=jobs,
            say=lambda line: console.print(line, markup=False),
            progress=progress,
        )


@leaderboard_app.command("build")
def build_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    out: Out = Path("leaderboard"),
    yes: Annotated[
        bool, typer.Option("--yes", help="Build although records of the former board are missing.")
    ] = False,
) -> None:
    """Build all files of the leaderboard.

    The same records give the same bytes. Records that the board in place was made from and that
    are no more are listed, and need --yes.
    """
    from faithbench.leaderboard.build import build_files, stale_files, write_files
    from faithbench.leaderboard.gather import shown_paths
    from faithbench.leaderboard.pages.formatting import counted
    from faithbench.leaderboard.vanished import read_former, vanished_records

    board, files = build_files(records, submissions)
    former = read_former(out)
    vanished = vanished_records(former, shown_paths(records, submissions))
    removed = stale_files(files, out)
    for line in vanished.lines + [f"{out / name}: to be removed" for name in removed]:
        _print(line)
    if vanished.count and not yes:
        raise FaithbenchError(
            f"{counted(vanished.count, 'record')} that the board in {out} was made from cannot be "
            f"found in {records} and {submissions}; restore them, check --records and "
            "--submissions, or build without them with --yes"
        )
    if removed and not former.readable and not yes:
        raise FaithbenchError(
            f"{counted(len(removed), 'file')} would be removed, and {out / 'leaderboard.json'} "
            "does not tell what it was made from; restore that file, or remove them with --yes"
        )
    changed = write_files(files, out)
    for name in changed:
        if name not in removed:
            _print(f"{out / name}")
    outcome = f"{len(changed)} files changed" if changed else "nothing changed"
    tables = counted(len(board.tables), "table")
    _print(f"{tables} from {board.records} records in {out}: {outcome}")


@leaderboard_app.command("check")
def check_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    out: Out = Path("leaderboard"),
) -> None:
    """Fail if the files differ from what a build would write."""
    from faithbench.leaderboard.build import build_files, differences
    from faithbench.leaderboard.gather import shown_paths
    from faithbench.leaderboard.pages.formatting import counted
    from faithbench.leaderboard.vanished import read_former, vanished_records

    board, files = build_files(records, submissions)
    vanished = vanished_records(read_former(out), shown_paths(records, submissions))
    differing = vanished.lines or differences(files, out)
    for line in differing:
        _print(line)
    if vanished.count:  # a build would make the loss look right
        raise FaithbenchError(
            f"{counted(vanished.count, 'record')} that the board in {out} was made from cannot be "
            f"found in {records} and {submissions}; restore them, or check --records and "
            "--submissions"
        )
    if differing:
        raise FaithbenchError(
            f"{len(differing)} files in {out} are not what the records give; "
            "run `faithbench leaderboard build` and commit what it writes"
        )
    tables = counted(len(board.tables), "table")
    _print(f"{tables} from {board.records} records in {out}: up to date")


@leaderboard_app.command("complete")
def complete_leaderboard(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Task, or folder of records; can be repeated."),
    ] = None,
    data: DataFolder = None,
    jobs: Jobs = None,
    results: Results = Path("results/complete"),
    records: Records = Path("leaderboard/records"),
) -> None:
    """Add metrics of words and scores that published records lack.

    These are stability and plausibility. Explainers run again on the same examples, and only
    records that still explain alike are completed. What was stopped continues where it was.
    """
    from faithbench.cli.display import progress_on
    from faithbench.leaderboard.complete import complete_records

    console = Console(highlight=False)
    with progress_on(console) as progress:
        complete_records(
            records,
            data=data,
            results=results,
            only=tuple(only or ()),
            jobs=jobs,
            say=lambda line: console.print(line, markup=False, soft_wrap=True),
            progress=progress,
        )


@leaderboard_app.command("publish")
def publish_records(
    results: Results = Path("results"),
    records: Records = Path("leaderboard/records"),
    attributions: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Keep tokens and scores of at most N examples per record."
        ),
    ] = 40,
) -> None:
    """Copy finished records to the leaderboard, trimmed and packed."""
    from faithbench.leaderboard.publish import publish_results

    published = publish_results(results, records, attributions)
    for path in published.changed:
        _print(f"{path}")
    outcome = f"{len(published.changed)} changed" if published.changed else "nothing changed"
    _print(f"{published.count} records of {results} in {records}: {outcome}")


def _print(line: str) -> None:
    """Print a line unbroken: scripts read paths out of it."""
    Console(highlight=False).print(line, soft_wrap=True, markup=False)

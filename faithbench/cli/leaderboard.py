"""The commands `faithbench leaderboard`: run, build, check and keep the board; views are apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from faithbench.cli.help.command import DATA, OUTPUT, WHAT, Application
from faithbench.cli.options import (
    PASSED,
    Backend,
    Commands,
    DataFolder,
    DryRun,
    Jobs,
    Passed,
    Results,
)
from faithbench.core.errors import FaithbenchError, unknown

leaderboard_app = Application(
    cls=Commands,
    help="Turn records into tables, rankings and pages.",
    no_args_is_help=True,
)

Records = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="Folder of the published records.", rich_help_panel=DATA),
]
Submissions = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the submissions, with their records.",
        rich_help_panel=DATA,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        metavar="FOLDER", help="Folder of the leaderboard's files.", rich_help_panel=OUTPUT
    ),
]


@leaderboard_app.command("run")
def run_leaderboard(
    plan: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="File that lists the runs of the leaderboard.",
            rich_help_panel=WHAT,
        ),
    ] = Path("leaderboard/plan.toml"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Name of one run of the plan; can be repeated.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data: DataFolder = None,
    jobs: Jobs = None,
    backend: Backend = "processes",
    dry_run: DryRun = False,
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
            backend=backend,
            dry_run=dry_run,
            say=lambda line: console.print(line, markup=False),
            progress=progress,
        )


@leaderboard_app.command("build")
def build_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    passed: Passed = PASSED,
    out: Out = Path("leaderboard"),
    yes: Annotated[
        bool,
        typer.Option(
            "--yes",
            help="Build although records of the former board are missing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    tables: Annotated[
        Literal["inside", "beside"] | None,
        typer.Option(
            help="Where the page has its tables: inside, so that it opens from a disk, or in files "
            "beside it, which load on demand from a web server (default: as before, or inside).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite",
            help="Replace files in the folder that no build made.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
) -> None:
    """Build all files of the leaderboard.

    The same records give the same bytes. A submission takes part once its check has passed.
    Records that the board in place was made from and that are no more are listed, and need --yes.
    Files are replaced and removed only if manifest.json lists them as a build made them.
    """
    from faithbench.leaderboard.build import build_files, write_files
    from faithbench.leaderboard.former.manifest import stale_files, tables_in
    from faithbench.leaderboard.former.vanished import read_former, vanished_records
    from faithbench.leaderboard.gather import shown_paths
    from faithbench.leaderboard.pages.formatting import counted
    from faithbench.records.own_examples import without_strays
    from faithbench.records.passed import accepted_submissions

    submitted = without_strays(records, accepted_submissions(submissions, passed))
    for line in submitted.left_out:
        _print(line)
    board, files = build_files(records, submitted.accepted, tables or tables_in(out))
    former = read_former(out)
    vanished = vanished_records(former, shown_paths(records, submitted.accepted))
    removed = stale_files(files, out, overwrite)
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
    changed = write_files(files, out, overwrite)
    for name in changed:
        if name not in removed:
            _print(f"{out / name}")
    outcome = f"{len(changed)} files changed" if changed else "nothing changed"
    made = f"{counted(len(board.tables), 'table')} from {board.records} records"
    _print(f"{made} in {out}: {outcome}")


@leaderboard_app.command("export")
def export_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    passed: Passed = PASSED,
    format_name: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="csv, parquet or json.", rich_help_panel=OUTPUT
        ),
    ] = "csv",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="File to write (default: board.<format>).", rich_help_panel=OUTPUT
        ),
    ] = None,
) -> None:
    """Write all numbers of the board as one flat table.

    A line has one explainer's result on one metric of one table: mean, interval, n, skill,
    letters, cost, and the records behind it.
    """
    from faithbench.leaderboard.build import make_board
    from faithbench.leaderboard.pages.export import FORMATS, flat_lines, write_export
    from faithbench.records.own_examples import without_strays
    from faithbench.records.passed import accepted_submissions

    if format_name not in FORMATS:
        raise unknown("format", format_name, FORMATS)
    submitted = without_strays(records, accepted_submissions(submissions, passed))
    board = make_board(records, submitted.accepted)
    path = out or Path(f"board.{format_name}")
    write_export(board, path, format_name)
    _print(f"{sum(1 for _ in flat_lines(board))} lines of {board.records} records in {path}")


@leaderboard_app.command("check")
def check_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    passed: Passed = PASSED,
    out: Out = Path("leaderboard"),
) -> None:
    """Fail if the files differ from what a build would write."""
    from faithbench.leaderboard.build import build_files, differences
    from faithbench.leaderboard.former.manifest import tables_in
    from faithbench.leaderboard.former.vanished import read_former, vanished_records
    from faithbench.leaderboard.gather import shown_paths
    from faithbench.leaderboard.pages.formatting import counted
    from faithbench.records.own_examples import without_strays
    from faithbench.records.passed import accepted_submissions

    submitted = without_strays(records, accepted_submissions(submissions, passed))
    for line in submitted.left_out:
        _print(line)
    board, files = build_files(records, submitted.accepted, tables_in(out))
    vanished = vanished_records(read_former(out), shown_paths(records, submitted.accepted))
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
        typer.Option(
            "--only",
            metavar="NAME",
            help="Task, or folder of records; can be repeated.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    data: DataFolder = None,
    jobs: Jobs = None,
    results: Results = Path("results/complete"),
    records: Records = Path("leaderboard/records"),
) -> None:
    """Add metrics of words and scores that published records lack.

    These are stability and plausibility. Explainers run again on the same examples, and only
    records that still explain alike are completed. What was stopped continues where it was.
    A record of an older revision of its explainer gets the cost of the current one.
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


@leaderboard_app.command("upgrade")
def upgrade_leaderboard(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    passed: Passed = PASSED,
) -> None:
    """Rewrite records of an older faithbench.

    They get the names that runs give them today; values stay as they are, and submissions
    that passed their check have passed it. Build the leaderboard afterwards: it shows where
    records lie.
    """
    from faithbench.leaderboard.pages.formatting import counted
    from faithbench.records.upgrade import upgrade_records, upgrade_submissions
    from faithbench.run.job import Job

    upgraded = 0
    for old, new in upgrade_records(records, chunk=Job.chunk, budget=Job.budget):
        _print(f"{records / old}: now {new}")
        upgraded += 1
    for old, new in upgrade_submissions(submissions, passed, chunk=Job.chunk, budget=Job.budget):
        _print(f"{submissions / old}: now {new}")
        upgraded += 1
    _print(f"{counted(upgraded, 'record')} upgraded")


@leaderboard_app.command("publish")
def publish_records(
    results: Results = Path("results"),
    records: Records = Path("leaderboard/records"),
    attributions: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Keep tokens and scores of at most N examples per record.",
            rich_help_panel=OUTPUT,
        ),
    ] = 40,
) -> None:
    """Copy finished records to the leaderboard, trimmed and packed."""
    from faithbench.leaderboard.publish import publish_results

    published = publish_results(results, records, attributions)
    for path in published.changed:
        _print(f"{path}")
    for path in published.removed:
        _print(f"{path} removed")
    outcome = f"{len(published.changed)} changed" if published.changed else "nothing changed"
    _print(f"{published.count} records of {results} in {records}: {outcome}")


def _print(line: str) -> None:
    """Print a line unbroken: scripts read paths out of it."""
    Console(highlight=False).print(line, soft_wrap=True, markup=False)

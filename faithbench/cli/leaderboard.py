"""The commands `leaderboard run`, `publish`, `build` and `check`: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli.options import Commands, DataFolder, Results

leaderboard_app = typer.Typer(
    cls=Commands, help="From records to tables, rankings and pages.", no_args_is_help=True
)

Records = Annotated[Path, typer.Option(help="Folder of published records.")]
Submissions = Annotated[Path, typer.Option(help="Folder of submissions, each with records.")]
Out = Annotated[Path, typer.Option(help="Folder of the leaderboard's files.")]


@leaderboard_app.command()
def run(
    plan: Annotated[Path, typer.Option(help="What is to run.")] = Path("leaderboard/plan.toml"),
    only: Annotated[
        list[str] | None, typer.Option("--only", help="A run of the plan; may be repeated.")
    ] = None,
    data: DataFolder = None,
    results: Results = Path("results/leaderboard"),
    records: Records = Path("leaderboard/records"),
) -> None:
    """Run what the plan names and has no published record yet; a killed run continues."""
    from faithbench.cli.leaderboard_commands import run_command

    run_command(plan=plan, only=only or [], data=data, results=results, records=records)


@leaderboard_app.command()
def build(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    out: Out = Path("leaderboard"),
) -> None:
    """Build all files of the leaderboard; the same records give the same bytes."""
    from faithbench.cli.leaderboard_commands import build_command

    build_command(records=records, submissions=submissions, out=out)


@leaderboard_app.command()
def check(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    out: Out = Path("leaderboard"),
) -> None:
    """Fail if the leaderboard's files are not what a build would write."""
    from faithbench.cli.leaderboard_commands import check_command

    check_command(records=records, submissions=submissions, out=out)


@leaderboard_app.command()
def publish(
    results: Results = Path("results"),
    records: Records = Path("leaderboard/records"),
    attributions: Annotated[
        int, typer.Option(min=0, help="Examples per record that keep tokens and scores.")
    ] = 40,
) -> None:
    """Copy finished records of a results folder to the leaderboard, trimmed and packed."""
    from faithbench.cli.leaderboard_commands import publish_command

    publish_command(results=results, records=records, attributions=attributions)

"""The commands of `faithbench submission`: parse, call one function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli.options import Commands, DataFolder, Limit, ModelName, Source, TaskName

submission_app = typer.Typer(
    cls=Commands, help="Bring an explainer, or attributions, of your own.", no_args_is_help=True
)

Folders = Annotated[
    list[str], typer.Argument(help="Folders of submissions, or all.", metavar="FOLDER|all")
]
Root = Annotated[Path, typer.Option(help="Where submissions are, or go.")]
Seconds = Annotated[int, typer.Option(min=1, help="Time for each submission.")]
Memory = Annotated[int, typer.Option(min=256, help="Its memory, in MB.")]
Strict = Annotated[bool, typer.Option("--strict", help="Run only where everything is enforced.")]


@submission_app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and -.")],
    kind: Annotated[str, typer.Option(help="plugin, or attributions.")] = "plugin",
    root: Root = Path("submissions"),
) -> None:
    """Start a submission: a folder with all files, ready to be changed."""
    from faithbench.cli.submission_run import new_command

    new_command(name, kind, root)


@submission_app.command()
def run(
    folders: Folders,
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    limit: Limit = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    root: Root = Path("submissions"),
) -> None:
    """Run a submitted explainer apart, measure its scores, and write the record."""
    from faithbench.cli.submission_run import run_command
    from faithbench.submissions.sandbox.confine import Limits

    run_command(
        folders=folders, root=root, task=task, model=model, data=data, source=source,
        split=split, limit=limit, limits=Limits(seconds, memory), strict=strict,
    )  # fmt: skip


@submission_app.command()
def score(
    folders: Folders,
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only this task's.")] = None,
    data: DataFolder = None,
    root: Root = Path("submissions"),
) -> None:
    """Measure submitted attributions, and write the records."""
    from faithbench.cli.submission_run import score_command

    score_command(folders=folders, root=root, task=task, data=data)


@submission_app.command()
def check(
    folders: Folders,
    data: DataFolder = None,
    sample: Annotated[
        int, typer.Option(min=0, help="Examples on which the model is asked again.")
    ] = 8,
    no_model: Annotated[
        bool, typer.Option("--no-model", help="Leave out what needs the model.")
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Check that files, names, sums and values of submissions are what they should be."""
    from faithbench.cli.submission_run import check_command

    check_command(folders=folders, root=root, data=data, sample=sample, no_model=no_model)


@submission_app.command()
def regenerate(
    task: Annotated[str, typer.Option("--task", "-t", help="The task of explainers.")] = "sst2",
    limit: Limit = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    root: Root = Path("submissions"),
) -> None:
    """Measure, on bundled data, all submissions that have no up-to-date record."""
    from faithbench.cli.submission_ci import regenerate_command
    from faithbench.submissions.sandbox.confine import Limits

    limits = Limits(seconds, memory)
    regenerate_command(root=root, task=task, limit=limit, limits=limits, strict=strict)


@submission_app.command()
def preview(
    folders: Folders,
    records: Annotated[Path, typer.Option(help="Folder of the board's records.")] = Path(
        "leaderboard/records"
    ),
    root: Root = Path("submissions"),
) -> None:
    """Print submissions beside the board's explainers, as tables of markdown."""
    from faithbench.cli.submission_ci import preview_command

    preview_command(folders, root, records)


@submission_app.command()
def scope(
    existing: Annotated[
        bool, typer.Option("--existing", help="Leave out submissions that were removed.")
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Read changed paths, a line each; print their submissions, or refuse a mixed change."""
    import sys

    from faithbench.cli.submission_ci import scope_command

    scope_command(sys.stdin, root, existing)

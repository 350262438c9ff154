"""The commands of `faithbench submission`: parse, call one function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli_options import DataFolder, Limit, ModelName, Source, TaskName

submission_app = typer.Typer(
    help="Bring an explainer, or attributions, of your own.", no_args_is_help=True
)

Folders = Annotated[
    list[str], typer.Argument(help="Folders of submissions, or all.", metavar="FOLDER|all")
]
Root = Annotated[Path, typer.Option(help="Where submissions are, or go.")]


@submission_app.command()
def new(
    name: Annotated[str, typer.Argument(help="Lower-case letters, digits and -.")],
    kind: Annotated[str, typer.Option(help="plugin, or attributions.")] = "plugin",
    root: Root = Path("submissions"),
) -> None:
    """Start a submission: a folder with all files, ready to be changed."""
    from faithbench.submissions.commands import new_command

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
    seconds: Annotated[int, typer.Option(min=1, help="Time for each submission.")] = 600,
    memory: Annotated[int, typer.Option(min=256, help="Its memory, in MB.")] = 4096,
    strict: Annotated[
        bool, typer.Option("--strict", help="Run only where everything is enforced.")
    ] = False,
    root: Root = Path("submissions"),
) -> None:
    """Run a submitted explainer apart, measure its scores, and write the record."""
    from faithbench.submissions.commands import run_command
    from faithbench.submissions.sandbox import Limits

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
    from faithbench.submissions.commands import score_command

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
    """Prove that files, names, sums and values of submissions are what they should be."""
    from faithbench.submissions.commands import check_command

    check_command(folders=folders, root=root, data=data, sample=sample, no_model=no_model)

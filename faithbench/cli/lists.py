"""The commands `list` and `show`: parse, call one function."""

from __future__ import annotations

from typing import Annotated

import typer

from faithbench.cli.options import Commands, DataFolder, Source

list_app = typer.Typer(cls=Commands, help="List what there is.", no_args_is_help=True)
show_app = typer.Typer(cls=Commands, help="Show one thing in full.", no_args_is_help=True)


@list_app.command("tasks")
def list_tasks(data: DataFolder = None) -> None:
    """List tasks: kind, classes, size, rationales, sources."""
    from faithbench.cli.listing import show_tasks

    show_tasks(data)


@show_app.command("task")
def show_task(
    name: Annotated[str, typer.Argument(help="A task's name, or a .toml file.")],
    data: DataFolder = None,
    source: Source = "auto",
) -> None:
    """Show a task's card and three of its rows."""
    from faithbench.cli.task_card import show_task as show

    show(name, data, source)


@list_app.command("explainers")
def list_explainers() -> None:
    """List explainers by family."""
    from faithbench.cli.listing import show_explainers

    show_explainers()


@list_app.command("metrics")
def list_metrics() -> None:
    """List metrics: family, direction, range, version."""
    from faithbench.cli.listing import show_metrics

    show_metrics()

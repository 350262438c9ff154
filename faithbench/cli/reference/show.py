"""The commands `faithbench show`: one explainer, metric, task, model or objective in full."""

from __future__ import annotations

from typing import Annotated

import typer

from faithbench.cli.help.command import Application
from faithbench.cli.help.completion import (
    complete_explainers,
    complete_metrics,
    complete_models,
    complete_tasks,
)
from faithbench.cli.options import Commands, DataFolder, PluginFiles, Source

show_app = Application(
    cls=Commands,
    help="Show a task, explainer, metric, model or objective.",
    no_args_is_help=True,
)


@show_app.command("explainer")
def show_explainer(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of an explainer.", autocompletion=complete_explainers
        ),
    ],
    plugin: PluginFiles = None,
) -> None:
    """Show an explainer: settings, cost, networks, papers."""
    from faithbench.cli.reference.card import narrow_console, print_card
    from faithbench.cli.reference.explainers import explainer_card

    with narrow_console().status("reading"):
        card = explainer_card(name, plugin or ())
    print_card(card)


@show_app.command("metric")
def show_metric(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Name of a metric.", autocompletion=complete_metrics),
    ],
    plugin: PluginFiles = None,
) -> None:
    """Show a metric: direction, range, cost, papers."""
    from faithbench.cli.reference.card import print_card
    from faithbench.cli.reference.metrics import metric_card

    print_card(metric_card(name, plugin or ()))


@show_app.command("task")
def show_task(
    name: Annotated[
        str,
        typer.Argument(
            metavar="TASK", help="Name of a task, or a .toml file.", autocompletion=complete_tasks
        ),
    ],
    data: DataFolder = None,
    source: Source = "auto",
) -> None:
    """Show what a task is, its sources, and three of its rows."""
    from faithbench.cli.reference.tasks import print_task

    print_task(name, data, source)


@show_app.command("model")
def show_model(
    name: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="bundled:<task>, a folder, or a hub name.",
            autocompletion=complete_models,
        ),
    ],
) -> None:
    """Show a model: training, scores, what lies beside it."""
    from faithbench.cli.reference.card import print_card
    from faithbench.cli.reference.models import model_card

    print_card(model_card(name))


@show_app.command("objective")
def show_objective(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of an objective.")],
) -> None:
    """Show an objective: settings, needs, papers."""
    from faithbench.cli.reference.card import narrow_console, print_card
    from faithbench.cli.reference.objectives import objective_card

    with narrow_console().status("reading"):
        card = objective_card(name)
    print_card(card)

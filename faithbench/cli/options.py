"""What several commands share: their options, and what they say after Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from faithbench.cli.help.command import ADVANCED, DATA, MODEL, OUTPUT, WHAT
from faithbench.cli.help.completion import complete_explainers, complete_models, complete_tasks
from faithbench.core.errors import Interrupted
from faithbench.data.sources import built_in_sources

TaskName = Annotated[
    str,
    typer.Option(
        "--task",
        "-t",
        metavar="TASK",
        help="Name of a task, or a .toml file that describes one.",
        autocompletion=complete_tasks,
        rich_help_panel=WHAT,
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="bundled:<task>, a folder, or a name on the hub (default: the task's own).",
        autocompletion=complete_models,
        rich_help_panel=MODEL,
    ),
]
DataFolder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        envvar="FAITHBENCH_DATA",
        help="Folder that holds <task>/<split>.jsonl.gz.",
        rich_help_panel=DATA,
    ),
]
Source = Annotated[
    str,
    typer.Option(
        metavar="SOURCE",
        help=f"Where the data come from: auto, {', '.join(built_in_sources())}.",
        rich_help_panel=DATA,
    ),
]
Split = Annotated[
    str,
    typer.Option(
        metavar="SPLIT",
        help="train, dev or test.",
        rich_help_panel=DATA,
    ),
]
Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE",
        help="auto, cpu, cuda or mps.",
        rich_help_panel=MODEL,
    ),
]
Explainers = Annotated[
    str,
    typer.Option(
        "--explainer",
        "-e",
        metavar="NAMES",
        help="Explainers as name[:key=value,...], separated by commas.",
        autocompletion=complete_explainers,
        rich_help_panel=WHAT,
    ),
]
PluginFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin",
        metavar="FILE",
        help="Python file of explainers or metrics; can be repeated.",
        rich_help_panel=WHAT,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Explain at most N examples.",
        rich_help_panel=DATA,
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        min=1,
        metavar="N",
        help="Spread the work over N processes with one thread each (default: one per core; "
        "on a GPU, one process).",
        rich_help_panel=ADVANCED,
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="NAME",
        help="Where the work is done, as name[:key=value,...]: processes, ray or slurm.",
        rich_help_panel=ADVANCED,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Tell rows, passes, time and memory after a short trial, and stop.",
        rich_help_panel=OUTPUT,
    ),
]
HtmlFile = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="Also write tables, tests, curves and heat maps as one HTML file.",
        rich_help_panel=OUTPUT,
    ),
]
Results = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="Folder of the records.", rich_help_panel=OUTPUT),
]
Passed = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="File of the submissions that passed their check.",
        rich_help_panel=DATA,
    ),
]
PASSED: Final = Path("leaderboard/passed.json")
"""Where passed checks are recorded. It is not among the submissions, whose authors write there."""

_ROWS_KEPT = "finished examples are kept; the same command continues after them"
_KEPT = {
    "run": "nothing was computed yet; an earlier run's examples are kept",
    "merge": _ROWS_KEPT,
    "leaderboard run": _ROWS_KEPT,
    "fresh": "finished examples and trainings are kept; the same command continues after them",
    "study sparse-attention": (
        "finished networks and records are kept; the same command continues after them"
    ),
    "reproduce": (
        "finished tables, models and records are kept; the same command continues after them"
    ),
    "train": "the same command continues from the last checkpoint, if one was written",
    "submission regenerate": (
        "submissions measured so far keep their records; the same command continues with the others"
    ),
}
_NOTHING_KEPT = "nothing is kept; the same command starts from the beginning"


class Commands(TyperGroup):
    """A group of commands that says truthfully what Ctrl-C leaves behind."""

    # The types are Typer's own copy of click's, which it does not export.
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options of the group itself."""
        params = super().get_params(ctx)
        # Typer's own flags, --help and those of completion, are None if not given. It then loads
        # pydantic to make a truth value of that, which takes as long as all else that help needs.
        for param in params:
            if getattr(param, "is_flag", False) and param.default is None:
                param.default = False
        return params

    def invoke(self, ctx: Any) -> Any:
        """Run a command of the group; after Ctrl-C exit with 130, as shells do."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            # The root's name is that of the script, the others' are typed by the user.
            groups = [] if ctx.parent is None else [ctx.info_name]
            command = " ".join([*groups, str(ctx.invoked_subcommand)])
            counted = isinstance(stop, Interrupted) and command in _KEPT
            kept = str(stop) if counted else _KEPT.get(command, _NOTHING_KEPT)
            typer.secho(f"Stopped; {kept}.", err=True)
            raise typer.Exit(130) from stop

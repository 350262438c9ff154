"""The command line: parse, call one function, print."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli.leaderboard import leaderboard_app
from faithbench.cli.lists import list_app, show_app
from faithbench.cli.models import heads, train
from faithbench.cli.options import (
    Commands,
    DataFolder,
    Device,
    Limit,
    ModelName,
    PluginFiles,
    Results,
    Source,
    TaskName,
)
from faithbench.cli.submission import submission_app
from faithbench.core.errors import FaithbenchError

app = typer.Typer(
    name="faithbench",
    cls=Commands,
    help="Measure how faithful, stable, plausible and fast explanations of NLP models are.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.add_typer(list_app, name="list")
app.add_typer(show_app, name="show")
app.add_typer(leaderboard_app, name="leaderboard")
app.add_typer(submission_app, name="submission")


@app.callback(invoke_without_command=True)
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if debug:
        os.environ["FAITHBENCH_DEBUG"] = "1"
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"faithbench {version_of('faithbench')}")
        raise typer.Exit


@app.command()
def run(
    explainer: Annotated[
        str,
        typer.Option("--explainer", "-e", help="name[:key=value,...], several with commas."),
    ],
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    split: Annotated[str, typer.Option(help="train, dev or test.")] = "test",
    limit: Limit = None,
    metrics: Annotated[
        str, typer.Option(help="Names or families, with commas; -name leaves out.")
    ] = "all",
    operator: Annotated[str, typer.Option(help="How to erase: mask, delete or pad.")] = "mask",
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, float64, bf16 or fp16.")] = "float32",
    seed: Annotated[int, typer.Option(help="First seed of random explainers.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of random explainers.")] = 3,
    encoder: Annotated[
        str | None, typer.Option(help="Sentence encoder for neighbours: a folder or hub name.")
    ] = None,
    no_human: Annotated[
        bool, typer.Option("--no-human", help="Leave human rationales out of the explainers.")
    ] = False,
    batch: Annotated[int, typer.Option(min=1, help="Examples explained together, at most.")] = 16,
    long: Annotated[str, typer.Option(help="Too long texts: truncate, or window.")] = "truncate",
    results: Results = Path("results"),
    allow_changed_data: Annotated[
        bool, typer.Option("--allow-changed-data", help="Accept data with another checksum.")
    ] = False,
    plugin: PluginFiles = None,
) -> None:
    """Explain a task's examples, score the explanations, and write a record of it."""
    from faithbench.cli.run import run_command
    from faithbench.run.request import Request

    run_command(Request(
        explainer=explainer, task=task, model=model, data=data, source=source, split=split,
        limit=limit, metrics=metrics, operator=operator, device=device, dtype=dtype, seed=seed,
        seeds=seeds, encoder=encoder, human=not no_human, batch=batch, long=long,
        results=results, allow_changed_data=allow_changed_data, plugins=tuple(plugin or ()),
    ))  # fmt: skip


@app.command()
def compare(
    explainers: Annotated[
        list[str], typer.Argument(help="Two or more, as `run` names them, or records' files.")
    ],
    task: TaskName,
    results: Results = Path("results"),
    metric: Annotated[
        str,
        typer.Option(
            "--metric", "--metrics", help="Names or families, with commas; -name leaves out."
        ),
    ] = "all",
) -> None:
    """Test recorded explainers against each other, and show where they differ most."""
    from faithbench.cli.compare import compare_command

    compare_command(explainers=explainers, task=task, results=results, metrics=metric)


@app.command()
def explain(
    text: Annotated[str, typer.Option("--text", help="The text to explain.")],
    text_b: Annotated[
        str | None, typer.Option("--text-b", help="The second text of a pair.")
    ] = None,
    explainer: Annotated[str, typer.Option("--explainer", "-e")] = "lrp-mask",
    task: TaskName = "sst2",
    model: ModelName = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of random explainers.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the heat maps to this page.")
    ] = None,
    plugin: PluginFiles = None,
) -> None:
    """Explain one text of your own, in colour and in numbers."""
    from faithbench.cli.explain import explain_command

    explain_command(
        text=text, text_b=text_b, explainer=explainer, task=task, model=model, device=device,
        seed=seed, plugins=plugin or [], html=html,
    )  # fmt: skip


app.command()(train)
app.command()(heads)


@app.command()
def doctor(data: DataFolder = None) -> None:
    """Say what this machine has: device, versions, data sources, extras."""
    from faithbench.cli.listing import show_doctor

    show_doctor(data)


def main() -> None:
    """Run the command line; an error is one line, a traceback only with --debug."""
    _show_notes_plainly()
    try:
        app()
    except FaithbenchError as error:
        if os.environ.get("FAITHBENCH_DEBUG"):
            raise
        kept = f"; {error.kept}" if error.kept else ""
        typer.secho(f"Error: {error}{kept}", err=True, fg="red")
        sys.exit(1)


def _show_notes_plainly() -> None:
    """Print our own warnings as one line each, and keep those of libraries to --debug."""
    if os.environ.get("FAITHBENCH_DEBUG"):
        return
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="faithbench")
    warnings.showwarning = lambda message, *_: typer.secho(f"Note: {message}", err=True)

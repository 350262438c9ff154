"""The command `faithbench`: all commands in the order of its help, and how it ends."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import warnings
from typing import Annotated

import typer

from faithbench.cli.cite import cite
from faithbench.cli.compare import compare
from faithbench.cli.compare_models import compare_models
from faithbench.cli.explain import explain
from faithbench.cli.help.command import Application
from faithbench.cli.leaderboard import leaderboard_app
from faithbench.cli.leaderboard_views import show_power, show_ranking
from faithbench.cli.lists import doctor, list_app
from faithbench.cli.options import Commands
from faithbench.cli.reference.show import show_app
from faithbench.cli.reproduce import reproduce
from faithbench.cli.run import merge, run
from faithbench.cli.study import study_app
from faithbench.cli.submission.commands import submission_app
from faithbench.cli.training.distil import distil
from faithbench.cli.training.fresh import fresh
from faithbench.cli.training.models import heads, train
from faithbench.core.errors import FaithbenchError, is_out_of_memory, why_not_written
from faithbench.core.text import readable

app = Application(
    name="faithbench",
    cls=Commands,
    help="Measure how faithful, stable, plausible and fast explanations of NLP models are.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # panels leave 23 of 80 columns for the text, and load all of rich
)
for command in (
    run, merge, compare, compare_models, explain, train, distil, fresh, heads, reproduce, cite,
    doctor,
):  # fmt: skip
    app.command()(command)
for name, view in (("ranking", show_ranking), ("power", show_power)):
    leaderboard_app.command(name)(view)
app.add_typer(study_app, name="study")
app.add_typer(list_app, name="list")
app.add_typer(show_app, name="show")
app.add_typer(leaderboard_app, name="leaderboard")
app.add_typer(submission_app, name="submission")


@app.callback(invoke_without_command=True)
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks (or set FAITHBENCH_DEBUG=1).")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if debug:
        os.environ["FAITHBENCH_DEBUG"] = "1"
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"faithbench {version_of('faithbench')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; an error is one line, a traceback only with --debug."""
    _show_notes_plainly()
    # The interpreter's last collections walk all that torch and transformers made: a second.
    atexit.register(gc.freeze)
    try:
        app()
    except FaithbenchError as error:
        if os.environ.get("FAITHBENCH_DEBUG"):
            raise
        kept = f"; {error.kept}" if error.kept else ""
        _end(f"{error}{kept}")
    except Exception as error:
        if os.environ.get("FAITHBENCH_DEBUG"):
            raise
        if is_out_of_memory(error):
            _end("there is not enough memory; end other programs, or give a smaller --batch")
        if not (why := why_not_written(error)):
            raise
        file = getattr(error, "filename2", None) or getattr(error, "filename", None)
        place = f" to {readable(str(file), 200)}" if file else ""
        _end(f"cannot write{place}: {why}; make room, or choose another folder, and run it again")


def _end(message: str) -> None:
    typer.secho(f"Error: {message}", err=True, fg="red")
    sys.exit(1)


def _show_notes_plainly() -> None:
    """Print our own warnings as one line each, and keep those of libraries to --debug."""
    if os.environ.get("FAITHBENCH_DEBUG"):
        return
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", module="faithbench")
    warnings.showwarning = lambda message, *_: typer.secho(f"Note: {message}", err=True)

"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskName = Annotated[str, typer.Option("--task", "-t", help="A task's name, or a .toml file.")]
ModelName = Annotated[
    str | None,
    typer.Option("--model", "-m", help="bundled:<task>, a folder, or a name on the hub."),
]
DataFolder = Annotated[
    Path | None,
    typer.Option("--data", envvar="FAITHBENCH_DATA", help="Folder of <task>/<split>.jsonl.gz."),
]
Source = Annotated[str, typer.Option(help="Where data come from: auto, folder, hub or bundled.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
PluginFiles = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file with an explainer of yours; may be repeated."),
]
Limit = Annotated[int | None, typer.Option(min=1, help="Explain only so many examples.")]
Results = Annotated[Path, typer.Option(help="Where records are, or go.")]

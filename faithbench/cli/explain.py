"""`faithbench explain`: one text of the user's own, in colour and in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from faithbench.cli.help.command import ADVANCED, OUTPUT, WHAT
from faithbench.cli.options import Device, Explainers, ModelName, PluginFiles, TaskName
from faithbench.core.errors import FaithbenchError


def explain(
    text: Annotated[
        str, typer.Option("--text", metavar="TEXT", help="Text to explain.", rich_help_panel=WHAT)
    ],
    text_b: Annotated[
        str | None,
        typer.Option(
            "--text-b",
            metavar="TEXT",
            help="Second text of a pair, or the question.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    explainer: Explainers = "lrp-mask",
    task: TaskName = "sst2",
    model: ModelName = None,
    device: Device = "auto",
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of random explainers.", rich_help_panel=ADVANCED)
    ] = 0,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Also write the heat maps as an HTML page.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    plugin: PluginFiles = None,
) -> None:
    """Explain one text of your own, in colour and in numbers."""
    from faithbench import api
    from faithbench.core.files import replace_file
    from faithbench.data.tasks import load_task
    from faithbench.explainers.selection import find_explainers

    console = Console()
    the_task = load_task(task)
    api.check_texts(the_task, text, text_b)
    if html is not None:
        check_page(html)
    with console.status("loading model"):
        selected = find_explainers(explainer, plugin or [], rationale=False)
        loaded = api.load_model(model, the_task, device=device)
    explanations = []
    for entry in selected:
        with console.status(f"explaining by {entry.label}"):
            explanation = api.explain(loaded, text, entry, text_b, the_task, seed)
        console.print(explanation)
        explanations.append((entry.label, explanation))
    if html is not None:
        from faithbench.cli.explain_page import render_explanations

        page = render_explanations(the_task, loaded.public_name, explanations)
        replace_file(html, page.encode())
        console.print(f"written: {html}", highlight=False, markup=False, soft_wrap=True)


def check_page(path: Path) -> None:
    """Refuse a page that cannot be written, before anything is computed for it."""
    from faithbench.core.files import check_writable

    if path.is_dir():
        raise FaithbenchError(
            f"--html should name a file, and {path} is a folder; "
            f"give for example --html {path / 'explained.html'}"
        )
    check_writable(path.parent, "--html")

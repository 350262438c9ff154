"""`faithbench explain`: one text of the user's own, in colour and in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.options import Device, ModelName, PluginFiles, TaskName
from faithbench.core.errors import FaithbenchError
from faithbench.data.kinds import KINDS

if TYPE_CHECKING:
    from faithbench.data.tasks import Task
    from faithbench.run.one_text import Explanation


def explain(
    text: Annotated[str, typer.Option("--text", help="The text to explain.")],
    text_b: Annotated[
        str | None, typer.Option("--text-b", help="The second text of a pair, or the question.")
    ] = None,
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer", "-e", help="Explainers as name[:key=value,...], separated by commas."
        ),
    ] = "lrp-mask",
    task: TaskName = "sst2",
    model: ModelName = None,
    device: Device = "auto",
    seed: Annotated[int, typer.Option(help="Seed of random explainers.")] = 0,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the heat maps to this HTML file.")
    ] = None,
    plugin: PluginFiles = None,
) -> None:
    """Explain one text of your own, in colour and in numbers."""
    from faithbench.core.files import replace_file
    from faithbench.data.tasks import load_task
    from faithbench.explainers.selection import find_explainers

    console = Console()
    the_task = load_task(task)
    _check_texts(the_task, text, text_b)
    if html is not None:
        check_page(html)
    with console.status("loading model"):
        selected = find_explainers(explainer, plugin or [], rationale=False)
        from faithbench.cli.explain_page import render_explanations
        from faithbench.models.model import load_model
        from faithbench.models.session import Session
        from faithbench.run.one_text import explain_text

        name, revision = (model, None) if model else default_model(the_task)
        loaded = load_model(
            name, labels=the_task.labels, kind=the_task.kind, revision=revision, device=device
        )
    session, explanations = Session(loaded), []
    for one in selected:
        with console.status(f"explaining by {one.label}"):
            explanation = explain_text(session, the_task, one, text, text_b, seed)
        print_explanation(console, one.label, explanation)
        explanations.append((one.label, explanation))
    if html is not None:
        page = render_explanations(the_task, loaded.public_name, explanations)
        replace_file(html, page.encode())
        console.print(f"written: {html}", highlight=False, markup=False, soft_wrap=True)


def _check_texts(task: Task, text: str, text_b: str | None) -> None:
    if not text.strip():
        raise FaithbenchError("the text is empty; give --text some words")
    if (text_b is None) != (KINDS[task.kind].texts == 1):
        advice = "give --text-b" if text_b is None else "leave out --text-b"
        raise FaithbenchError(f"task {task.name} is of kind {task.kind}; {advice}")


def print_explanation(console: Console, label: str, explanation: Explanation) -> None:
    """Print the prediction, the text in colour, and its ten strongest words."""
    from faithbench.cli.heat_map import heat_map

    prediction = f": {explanation.said} (p = {explanation.probability:.3f})"
    console.print(Text.assemble((label, "bold"), prediction))
    attribution = explanation.attribution
    console.print(heat_map(attribution.encoding, attribution.scores))
    table = Table("word", "score")
    for word, score in explanation.words[:10]:
        table.add_row(Text(word), f"{score:+.4g}")
    console.print(table)


def check_page(path: Path) -> None:
    """Refuse a page that cannot be written, before anything is computed for it."""
    from faithbench.core.files import check_writable

    if path.is_dir():
        raise FaithbenchError(
            f"--html should name a file, and {path} is a folder; "
            f"give for example --html {path / 'explained.html'}"
        )
    check_writable(path.parent, "--html")


def default_model(task: Task) -> tuple[str, str | None]:
    """Return the task's model: the bundled one if there is one, for it needs no download."""
    for source in ("bundled", *task.tables):
        ref = task.models.get(source)
        if ref is not None:
            return ref.name, ref.revision
    raise FaithbenchError(f"task {task.name} names no model; give one with --model")

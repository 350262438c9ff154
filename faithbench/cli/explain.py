"""What the commands do once their options are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.heat_map import heat_map
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable, replace_file
from faithbench.data.task_schema import Source
from faithbench.data.tasks import Task, load_task
from faithbench.explainers.selection import find_explainers

if TYPE_CHECKING:
    from faithbench.run.one_text import Explanation


def explain_command(
    *,
    text: str,
    text_b: str | None,
    explainer: str,
    task: str,
    model: str | None,
    device: str,
    seed: int,
    plugins: list[Path],
    html: Path | None,
) -> None:
    """Explain one text and print its words with their scores, strongest first.

    With `html`, the same heat maps and all words go into a page there as well.
    """
    console = Console()
    the_task = load_task(task)
    chosen = find_explainers(explainer, plugins, rationale=False)
    if not text.strip():
        raise FaithbenchError("the text is empty; give --text some words")
    if (text_b is None) != (the_task.kind == "classification"):
        advice = "give --text-b" if text_b is None else "leave out --text-b"
        raise FaithbenchError(f"task {the_task.name} is of kind {the_task.kind}; {advice}")
    if html is not None:
        check_page(html)
    from faithbench.cli.explain_page import render_explanations
    from faithbench.run.one_text import explain_text

    with console.status("loading model"):
        from faithbench.models.model import load_model

        name, revision = (model, None) if model else default_model(the_task)
        loaded = load_model(
            name, labels=the_task.labels, kind=the_task.kind, revision=revision, device=device
        )
    explained = []
    for one in chosen:
        said = explain_text(loaded, the_task, one, text, text_b, seed)
        print_explanation(console, one.label, said)
        explained.append((one.label, said))
    if html is not None:
        replace_file(html, render_explanations(the_task, loaded.public_name, explained).encode())
        console.print(f"written: {html}", highlight=False, markup=False, soft_wrap=True)


def print_explanation(console: Console, label: str, said: Explanation) -> None:
    """Print what one explainer says: the text in colour, and its ten strongest words."""
    answer = f": {said.said} (p = {said.probability:.3f})"
    console.print(Text.assemble((label, "bold"), answer))
    console.print(heat_map(said.attribution.encoding, said.attribution.scores))
    table = Table("word", "score")
    for word, score in said.words[:10]:
        table.add_row(word, f"{score:+.4g}")
    console.print(table)


def check_page(path: Path) -> None:
    """Refuse a page that could not be written, before anything is computed for it."""
    if path.is_dir():
        raise FaithbenchError(
            f"--html should name a file, and {path} is a folder; "
            f"give for example --html {path / 'explained.html'}"
        )
    check_writable(path.parent, "--html")


def default_model(task: Task) -> tuple[str, str | None]:
    """Return the model that needs nothing from outside, else the task's first."""
    order: tuple[Source, ...] = ("bundled", "folder", "hub")
    for source in order:
        ref = task.models.get(source)
        if ref is not None:
            return ref.name, ref.revision
    raise FaithbenchError(f"task {task.name} names no model; give one with --model")

"""What the commands do once their options are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.data import load_dataset
from faithbench.display import heat_map, progress_on
from faithbench.errors import FaithbenchError
from faithbench.files import check_writable, replace_file
from faithbench.jobs import model_for
from faithbench.selection import find_explainers
from faithbench.task_parts import Source
from faithbench.tasks import Task, load_task

if TYPE_CHECKING:
    from faithbench.single import Explanation


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
    from faithbench.explain_page import render_explanations
    from faithbench.single import explain_text

    with console.status("loading model"):
        from faithbench.models import load_model

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


def heads_command(
    *,
    task: str,
    model: str | None,
    data: Path | None,
    source: str,
    sentences: int,
    examples: int,
    max_tokens: int | None,
    coarse: bool,
    device: str,
    out: Path | None,
) -> None:
    """Measure and calibrate a model's heads, and store what was found."""
    console = Console()
    the_task = load_task(task)
    if out is not None:
        check_writable(out.parent, "--out")
    parsed = load_dataset(the_task, source=source, split="train", folder=data, limit=sentences)
    dev = load_dataset(the_task, source=source, split="dev", folder=data, limit=examples)
    from faithbench.calibration import PAPER, calibrate
    from faithbench.encoding import shortened
    from faithbench.head_statistics import PARSER, measure, spacy_parse
    from faithbench.heads import HeadStatistics, cached_heads, count_heads, select, write_heads
    from faithbench.models import load_model

    name, revision = model_for(the_task, parsed, model)
    loaded = load_model(
        name, labels=the_task.labels, kind=the_task.kind, revision=revision, device=device
    )
    loaded = shortened(loaded, max_tokens)
    target = out or cached_heads(loaded)
    check_writable(target.parent, "--out")
    with progress_on(console) as progress:
        relations, positions = measure(loaded, parsed.examples, spacy_parse, progress)
        facts = HeadStatistics(
            task=the_task.name,
            model=loaded.public_name,
            weights_sha256=loaded.weights_sha256,
            parser=f"{PARSER} {installed_version(PARSER)}",
            split=parsed.split,
            sentences=len(parsed.examples),
            data_sha256=parsed.sha256,
            relations=relations,
            positions=positions,
            thresholds={"paper": PAPER},
        )
        facts = calibrate(loaded, facts, dev, progress, step=3 if coarse else 1)
    write_heads(facts, target)
    table = Table("thresholds", "xi syntactic", "xi positional", "heads", "dev AOPC")
    grid = facts.calibration.grid if facts.calibration is not None else ()
    trials = {(t.xi_syntactic, t.xi_positional): t.aopc for t in grid}
    for kind, pair in facts.thresholds.items():
        score = trials.get(pair)
        table.add_row(
            kind,
            *(f"{xi:g}" for xi in pair),
            str(count_heads(select(facts, *pair))),
            "-" if score is None else f"{score:.4f}",
        )
    console.print(table)
    console.print(f"written: {target}", highlight=False, soft_wrap=True)


def installed_version(module: str) -> str:
    """Return the version of the package that a module comes from."""
    from importlib.metadata import version

    return version(module.replace("_", "-"))

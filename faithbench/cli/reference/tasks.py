"""The card of a task that `faithbench show task` prints, within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from faithbench.cli.reference.card import facts_table, narrow_console, wrapped
from faithbench.core.errors import FaithbenchError
from faithbench.core.papers import Paper, paper_of
from faithbench.core.text import plain
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset, load_dataset, sources
from faithbench.data.tasks import Task, load_task

_LONGEST = 300
"""Characters shown of a text, at most."""


def print_task(task_name: str, data: Path | None = None, source: str = "auto") -> None:
    """Print a task's card, and three of its rows if a source can give them."""
    task = load_task(task_name)
    console = narrow_console()
    console.print(Text(f"{task.name}: {task.title}", style="bold"))
    console.print(facts_table(task_facts(task)))
    for name, answer in sources(task, data).items():
        if name in task.tables:
            console.print(Text(f"\n{name}", style="bold"), Text(f"(test split here: {answer})"))
            console.print(facts_table(source_facts(task, name)))
    try:
        dataset = load_dataset(task, source=source, folder=data, limit=3, allow_changed=True)
    except FaithbenchError as error:
        console.print(Text(f"\nno rows to show: {error}"))
    else:
        _print_rows(dataset)
    for paper in task_papers(task):
        console.print(Text(f"\n{wrapped(paper.bibtex)}"), soft_wrap=True)


def _print_rows(dataset: Dataset) -> None:
    console, task = narrow_console(), dataset.task
    title = f"three rows ({dataset.source}, test, rationale {dataset.rationale})"
    console.print(Text(f"\n{title}", style="bold"))
    for example in dataset.examples:
        console.print(Text(f"{example.id}: {task.labels[example.label]}", style="bold"))
        console.print(facts_table(tuple(_row_facts(example))))


def task_papers(task: Task) -> tuple[Paper, ...]:
    """Return the papers of a task."""
    return tuple(map(paper_of, task.papers))


def task_facts(task: Task) -> tuple[tuple[str, str], ...]:
    """Return what a task asks, whatever its source."""
    citations = [*(paper.reference for paper in task_papers(task)), task.citation]
    return (
        ("kind", f"{task.kind}, version {task.version}"),
        ("labels", ", ".join(task.labels)),
        ("erased", "both texts" if task.evidence == "both" else task.evidence),
        ("rationale", f"{task.rationale}. {task.rationale_note}".strip(". ") + "."),
        ("licence", task.licence or "not stated"),
        ("citation", "\n".join(filter(None, citations)) or "not stated"),
    )


def source_facts(task: Task, source: str) -> tuple[tuple[str, str], ...]:
    """Return where one source has a task's data, and which model explains them."""
    return tuple(_source_facts(task, source))


def _source_facts(task: Task, source: str) -> Iterator[tuple[str, str]]:
    table = task.tables[source]
    yield from table.facts()
    splits = (
        f"{split} = {name}{_count(table.rows.get(split))}" for split, name in table.splits.items()
    )
    yield "splits", ", ".join(splits)
    model = task.models.get(source)
    yield "model", "none: give --model" if model is None else _pinned(model.name, model.revision)


def _count(rows: int | None) -> str:
    return "" if rows is None else f" ({rows})"


def _pinned(name: str, revision: str | None) -> str:
    """Return a model's name, and whether its weights can change."""
    if name.startswith("bundled:"):
        return name
    return f"{name} at {revision}" if revision else f"{name} (unpinned)"


def _row_facts(example: Example) -> Iterator[tuple[str, str]]:
    yield "text", _shortened(example.text)
    if example.text_b is not None:
        yield "text_b", _shortened(example.text_b)
    if example.choices:
        yield "choices", _shortened(" | ".join(example.choices))
    if example.rationale:
        marked = " | ".join(example.text[start:end] for start, end in example.rationale)
        yield "rationale", _shortened(marked)
    if example.answers:
        yield "answers", _shortened(" | ".join(dict.fromkeys(a.text for a in example.answers)))


def _shortened(text: str) -> str:
    line = plain(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 4]} ..."

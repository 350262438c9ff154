"""`faithbench cite`: the BibTeX of everything that results rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from faithbench.cli.help.command import WHAT
from faithbench.cli.options import PluginFiles
from faithbench.core.errors import FaithbenchError

if TYPE_CHECKING:
    from faithbench.core.papers import Paper


def cite(
    records: Annotated[
        list[str] | None,
        typer.Argument(metavar="RECORD", help="Records, or folders of records."),
    ] = None,
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer",
            "-e",
            metavar="NAMES",
            help="Explainers to cite, by name.",
            rich_help_panel=WHAT,
        ),
    ] = "",
    task: Annotated[
        str,
        typer.Option(
            "--task",
            "-t",
            metavar="TASKS",
            help="Tasks to cite, separated by commas.",
            rich_help_panel=WHAT,
        ),
    ] = "",
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics", metavar="NAMES", help="Metrics or families to cite.", rich_help_panel=WHAT
        ),
    ] = "",
    plugin: PluginFiles = None,
) -> None:
    """Print BibTeX of tasks, explainers, metrics and the suite.

    Each paper comes once, sorted by key. What no paper stands behind is named on the error stream.
    """
    from faithbench.core.papers import suite, to_bibtex

    files = tuple(plugin or ())
    named = [
        *_tasks(_names(task)),
        *_explainers(explainer, files),
        *_metrics(metrics, files),
        *(entry for path in records or () for entry in _of_records(Path(path))),
    ]
    if not named:
        raise FaithbenchError("nothing to cite; name records, or --explainer, --task or --metrics")
    papers = [paper for _, own in named for paper in own]
    typer.echo(to_bibtex([suite(), *papers]), nl=False)
    without = dict.fromkeys(name for name, own in named if not own)
    if without:
        typer.echo(f"no paper to cite is known for: {', '.join(without)}", err=True)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _tasks(names: Iterable[str]) -> Iterator[tuple[str, tuple[Paper, ...]]]:
    from faithbench.cli.reference.tasks import task_papers
    from faithbench.data.tasks import load_task

    for name in names:
        yield f"task {name}", task_papers(load_task(name))


def _explainers(text: str, files: tuple[Path, ...]) -> Iterator[tuple[str, tuple[Paper, ...]]]:
    from faithbench.cli.reference.explainers import explainer_papers
    from faithbench.core.spec import parse_explainers
    from faithbench.explainers.registry import EXPLAINERS
    from faithbench.explainers.selection import find_explainers

    names = [name for name, _ in parse_explainers(text)] if text else []
    if all(name in EXPLAINERS for name in names):  # without torch, which takes seconds to load
        for name in names:
            yield f"explainer {name}", explainer_papers(name)
        return
    for one in find_explainers(text, files):
        yield f"explainer {one.name}", explainer_papers(one.name, one.explainer)


def _metrics(text: str, files: tuple[Path, ...]) -> Iterator[tuple[str, tuple[Paper, ...]]]:
    from faithbench.core.papers import papers_of
    from faithbench.metrics import find_metrics

    for metric in find_metrics(text, files=files) if text else ():
        yield f"metric {metric.name}", papers_of(metric)


def _of_records(path: Path) -> Iterator[tuple[str, tuple[Paper, ...]]]:
    """Yield what a record, or each record below a folder, rests on."""
    from faithbench.core.papers import papers_of
    from faithbench.data.tasks import task_names
    from faithbench.metrics import METRICS
    from faithbench.records.record import read
    from faithbench.records.store import record_files

    files = [file for file, _ in record_files(path)] if path.is_dir() else [path]
    if not files:
        raise FaithbenchError(f"no record in {path}; name the folder that a run wrote to")
    for file in files:
        record = read(file)
        known = record.task.name in task_names()
        yield from _tasks([record.task.name]) if known else [(f"task {record.task.name}", ())]
        yield f"explainer {record.explainer.name}", _recorded(record.explainer.name)
        for name in record.metrics:
            yield f"metric {name}", papers_of(METRICS.get(name))


def _recorded(name: str) -> tuple[Paper, ...]:
    """Return the papers of a recorded explainer; a plugin's where it is installed here."""
    from faithbench.cli.reference.explainers import explainer_papers
    from faithbench.core.papers import papers_of
    from faithbench.explainers.registry import EXPLAINERS, installed_plugins

    if name in EXPLAINERS or name.startswith("captum:"):
        return explainer_papers(name)
    return next((papers_of(p.load()) for p in installed_plugins() if p.name == name), ())

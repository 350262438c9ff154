"""All reference pages of the documentation's site, by their paths: made as the site is built."""

from __future__ import annotations

from collections.abc import Iterator

from faithbench.cli.reference.examples import (
    COMPARED,
    EXAMPLES,
    OBJECTIVES,
    heat_map_of,
    task_example,
    values_of,
)
from faithbench.cli.reference.explainers import explainer_card
from faithbench.cli.reference.metrics import metric_card
from faithbench.cli.reference.models import bundled_models, model_card
from faithbench.cli.reference.objectives import objective_card
from faithbench.cli.reference.pages import card_page, index_page, page_name, table, task_page
from faithbench.cli.reference.tasks import source_facts, task_facts, task_papers
from faithbench.data.tasks import load_task, task_names
from faithbench.explainers.registry import EXPLAINERS
from faithbench.metrics import FAMILIES, METRICS
from faithbench.metrics.kinds import Trained

COLOURS = (
    "Orange words speak for the prediction, blue ones against it; the deeper the colour, the "
    "stronger. "
)


def reference_pages(examples: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the path and the markdown of each page, indexes first.

    Without `examples`, nothing is explained, and no model is loaded.
    """
    yield from _explainers(examples)
    yield from _metrics(examples)
    yield from _tasks(examples)
    yield from _objectives(examples)
    yield from _models()


def _explainers(examples: bool) -> Iterator[tuple[str, str]]:
    rows = [(name, listed.family, listed.summary) for name, listed in EXPLAINERS.items()]
    text = (
        "Each page has what an explainer computes, its settings, its cost, the architectures it "
        "was tested on, an example and the papers to cite. [Methods](../../methods.md) tells where "
        "an explainer departs from its paper. `captum:<Class>` runs any attribution class of "
        "captum."
    )
    yield "explainers/index.md", index_page("Explainers", text, rows)
    for name in EXPLAINERS:
        example = f"{COLOURS}\n\n{heat_map_of(name)}" if examples else ""
        page = card_page(explainer_card(name), example, f"faithbench show explainer {name}")
        yield f"explainers/{page_name(name)}", page


def _metrics(examples: bool) -> Iterator[tuple[str, str]]:
    by_family = sorted(METRICS.values(), key=lambda metric: FAMILIES.index(metric.family))
    rows = [(metric.name, metric.family, metric.summary) for metric in by_family]
    text = "[The protocol](../../protocol.md) defines every number, and how numbers are compared."
    yield "metrics/index.md", index_page("Metrics", text, rows)
    for name in METRICS:
        example = _metric_example(name) if examples else ""
        page = card_page(metric_card(name), example, f"faithbench show metric {name}")
        yield f"metrics/{page_name(name)}", page


def _metric_example(name: str) -> str:
    """Show what a metric makes of three explainers, and how these explain a sentence."""
    if isinstance(METRICS[name], Trained):
        return "It is a score of whole splits: [objectives](../../objectives.md) has results."
    values = [
        (f"`{label}`", "-" if value is None else f"{value:.4g}") for label, value in values_of(name)
    ]
    maps = "\n\n".join(heat_map_of(explainer) for explainer in COMPARED)
    if not values:
        return f"{COLOURS}This is what metrics are given:\n\n{maps}"
    return (
        f"Means over {EXAMPLES} bundled examples, which show how to read the metric and rank "
        f"nothing:\n\n{table(('explainer', name.partition(':')[0]), values)}\n\n"
        f"{COLOURS}\n\n{maps}"
    )


def _tasks(examples: bool) -> Iterator[tuple[str, str]]:
    tasks = [load_task(name) for name in task_names()]
    rows = sorted(((task.name, task.kind, task.title) for task in tasks), key=lambda row: row[1])
    text = (
        "A task is one file: what is asked, where its data are, which model answers. "
        "[The README](../../../README.md) has one of fifteen lines."
    )
    yield "tasks/index.md", index_page("Tasks", text, rows)
    for task in tasks:
        sources = [(name, source_facts(task, name)) for name in task.tables]
        if task.bundled is None:
            example = "No rows of this task come with the package."
        else:
            example = f"{COLOURS}\n\n{task_example(task.name)}" if examples else ""
        page = task_page(task, task_facts(task), sources, task_papers(task), example)
        yield f"tasks/{page_name(task.name)}", page


def _objectives(examples: bool) -> Iterator[tuple[str, str]]:
    cards = [objective_card(name) for name in OBJECTIVES]
    text = (
        "What `faithbench train --objective` can minimise. [Objectives](../../objectives.md) tells "
        "how models are trained so that their explanations get better, and what came out."
    )
    rows = [(card.name, "", card.summary) for card in cards]
    yield "objectives/index.md", index_page("Objectives", text, rows)
    for card in cards:
        explainers, caption = OBJECTIVES[card.name]
        maps = "\n\n".join(map(heat_map_of, explainers)) if examples else ""
        page = card_page(card, f"{caption}\n\n{maps}", f"faithbench show objective {card.name}")
        yield f"objectives/{page_name(card.name)}", page


def _models() -> Iterator[tuple[str, str]]:
    cards = [model_card(name) for name in bundled_models()]
    rows = [(card.name, "", card.summary) for card in cards]
    text = "Models that come with the package: adapters on all-MiniLM-L6-v2, with their scores."
    yield "models/index.md", index_page("Bundled models", text, rows)
    for card in cards:
        page = card_page(card, "", f"faithbench show model {card.name}")
        yield f"models/{page_name(card.name)}", page

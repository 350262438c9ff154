"""Train models with neutral labels, and ask whether their explanations find the rationale.

    python benchmarks/neutral.py run --data <data folder> [--out models/neutral] [--task movies]
    python benchmarks/neutral.py tables [--out models/neutral] [--no-write]

A plain model and one with `--objective neutral` are trained alike and explained on the same test
texts; `run` continues where it was stopped. Reviews are long and few, so both models of movies
start from the bundled one. Tables 4 and 5 of L2E (Situ et al., ACL 2021): agreement with rationales
on texts that both models get right, by class, and the overlap of labels with its three filters.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tabulate import tabulate

from faithbench.data.tasks import load_task
from faithbench.records.model_comparison import compare_models, examples_of, find_models
from faithbench.training.recipe import Recipe, load_splits, usual_metric

AGREEMENT = ("token_precision", "token_recall", "token_f1", "auprc")
OVERLAPS = ("iou_labels:variant=raw", "iou_labels:words=annotated", "iou_labels:words=content")


@dataclass(frozen=True)
class Study:
    """How the two models of a task are trained and explained; `start` is a bundled model."""

    recipe: Recipe
    explainers: str
    metrics: tuple[str, ...]
    texts: int
    start: str | None = None


STUDIES = {
    "hatexplain": Study(
        Recipe(epochs=1),
        "attention,gradient,input-x-gradient,deep-shap,occlusion,random",
        (*AGREEMENT, *OVERLAPS),
        300,
    ),
    "movies": Study(
        Recipe(epochs=1, max_tokens=192),
        "attention,gradient,input-x-gradient,random",
        AGREEMENT,
        60,
        "bundled:movies",
    ),
}


def run(data: Path, out: Path, task: str) -> None:
    """Train both models of a task, and explain its test texts with each."""
    from faithbench.api import evaluate
    from faithbench.training.card import is_finished
    from faithbench.training.fit import fit

    study, the_task = STUDIES[task], load_task(task)
    splits = load_splits(the_task, folder=data)
    base = None if study.start is None else _merged(study.start, task, out / f"base-{task}")
    for name, objectives in (("plain", ()), ("neutral", ("neutral",))):
        folder = out / f"{task}-{name}"
        if not is_finished(folder):
            recipe = replace(study.recipe, metric=usual_metric(the_task), objectives=objectives)
            fit(splits, recipe, folder, lambda *_: None, base=base)
        print(folder.name, json.loads((folder / "card.json").read_text())["test"], flush=True)
        evaluate(
            task,
            study.explainers,
            model=str(folder),
            data=data,
            limit=study.texts,
            metrics=study.metrics,
            human=False,
            seeds=1,
            jobs=1,
            results=out / "records",
        )
        print(f"{folder.name} explained", flush=True)


def _merged(name: str, task: str, folder: Path) -> str:
    """Save a bundled model with its adapter merged into the weights, to start trainings from."""
    if not (folder / "config.json").exists():
        from faithbench.api import load_model

        model = load_model(name, task)
        model.network.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
    return str(folder)


def tables(out: Path, task: str) -> str:
    """Return what a task's two models are worth, and a line per metric, class and explainer."""
    cards = {
        name: json.loads((out / f"{task}-{name}" / "card.json").read_text())
        for name in ("plain", "neutral")
    }
    accuracy = {name: card["test"]["accuracy"] for name, card in cards.items()}
    found = cards["neutral"]["test_added"]["neutral"]
    told = (
        f"test accuracy {accuracy['plain']:.3f} plain, {accuracy['neutral']:.3f} with neutral "
        f"labels; {found:.3f} of the test texts without their rationale are found neutral"
    )
    lines = list(_lines(out, task))
    head = ("metric", "class", "explainer", "n", "plain", "neutral", "change", "p, Holm")
    return f"### {task}: {told}\n\n{tabulate(lines, head, 'pipe', disable_numparse=True)}\n"


def _lines(out: Path, task: str) -> Iterator[tuple[str, ...]]:
    plain, neutral = find_models([f"{task}-plain", f"{task}-neutral"], task, out / "records")
    labels = plain.first.record.model.labels
    explainers = list(plain.by_explainer)
    for metric in STUDIES[task].metrics:
        for label in sorted({row.label for row in plain.first.rows}):
            ids = examples_of([plain, neutral], right=True, label=label)
            for pair in compare_models(plain, neutral, metric, explainers, ids):
                p = "-" if pair.adjusted is None else f"{pair.adjusted:.2g}"
                change = f"{pair.second - pair.first:+.3f}"
                means = (f"{pair.first:.3f}", f"{pair.second:.3f}")
                yield (metric, labels[label], pair.explainer, str(pair.n), *means, change, p)


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("run", "tables"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("models/neutral"))
    parser.add_argument("--task", choices=STUDIES, default=None)
    parser.add_argument("--no-write", action="store_true")
    asked = parser.parse_args()
    wanted = [asked.task] if asked.task else list(STUDIES)
    if asked.command == "run":
        for task in wanted:
            run(asked.data, asked.out, task)
        return
    done = [task for task in wanted if (asked.out / f"{task}-neutral" / "card.json").exists()]
    body = "\n".join(tables(asked.out, task) for task in done)
    if asked.no_write:
        print(body)
    else:
        from tables import write_section

        write_section("Neutral labels", "python benchmarks/neutral.py tables", body, timed=False)


if __name__ == "__main__":
    main()

"""Train models with neutral labels, and ask whether their explanations find the rationale.

    python benchmarks/neutral.py run --data <data folder> [--out models/neutral] [--task movies]
    python benchmarks/neutral.py tables [--out models/neutral] [--no-write]

A plain model, one with `--objective neutral` and one with `neutral:others=true` are trained alike
and explained on the same test texts; `run` continues where it was stopped. Reviews are long and
few, so the models of movies start from the bundled one. Tables 4 and 5 of L2E (Situ et al., ACL
2021): agreement with rationales on texts that both models get right, by class, and the overlap of
labels with its three filters.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from tabulate import tabulate

from faithbench.data.tasks import load_task
from faithbench.records.model_comparison import (
    compare_models,
    examples_of,
    find_models,
    recorded_models,
)
from faithbench.training.recipe import Recipe, load_splits, usual_metric

AGREEMENT = ("token_precision", "token_recall", "token_f1", "auprc")
OVERLAPS = ("iou_labels:variant=raw", "iou_labels:words=annotated", "iou_labels:words=content")


TRAININGS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "neutral": ("neutral",),
    "others": ("neutral:others=true",),
}


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
    for name, objectives in TRAININGS.items():
        folder = out / f"{task}-{name}"
        if not is_finished(folder):
            recipe = replace(study.recipe, metric=usual_metric(the_task), objectives=objectives)
            fit(splits, recipe, folder, lambda *_: None, base=base)
        print(folder.name, json.loads((folder / "card.json").read_text())["test"], flush=True)
        if folder.name in recorded_models(out / "records", task):
            continue
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


def masked_alike(data: Path, out: Path, task: str) -> None:
    """Ask each model about test texts without the rationale, and without as many other tokens.

    A model that says neutral to both has learnt to see the mask, not that evidence is missing.
    """
    from faithbench.core.types import TokenRow
    from faithbench.data.dataset import load_dataset
    from faithbench.data.rationales import without_rationale
    from faithbench.models.encoding import encode
    from faithbench.models.engine import Engine
    from faithbench.models.model import load_model
    from faithbench.training.objectives.neutral import without_others

    test = load_dataset(load_task(task), folder=data)
    for name in (name for name in TRAININGS if name != "plain"):
        folder = out / f"{task}-{name}"
        if not (folder / "card.json").exists():
            continue
        model = load_model(str(folder), labels=test.task.labels)
        encodings = [encode(model, e, test.task.evidence) for e in test.examples if e.rationale]
        shares = {}
        for erased, keep in (("rationale", without_rationale), ("others", without_others)):
            rows: list[TokenRow] = []
            for encoding in encodings:
                kept = keep(encoding)
                if kept is not None:
                    ids = np.where(kept, encoding.ids, model.erasure_id("mask"))
                    rows.append((ids, encoding.types))
            said = Engine(model).log_probabilities(rows).argmax(axis=1)
            shares[erased] = round(float((said == len(test.task.labels)).mean()), 4)
        (folder / "masked.json").write_text(json.dumps(shares) + "\n")
        print(folder.name, "found neutral without", shares, flush=True)


def tables(out: Path, task: str) -> str:
    """Return what a task's models are worth, and a line per metric, class and explainer."""
    lines = []
    for name in TRAININGS:
        folder = out / f"{task}-{name}"
        if (folder / "card.json").exists():
            card = json.loads((folder / "card.json").read_text())
            masked = folder / "masked.json"
            shares = json.loads(masked.read_text()) if masked.exists() else {}
            found = (f"{shares[key]:.3f}" if shares else "-" for key in ("rationale", "others"))
            lines.append((name, f"{card['test']['accuracy']:.3f}", *found))
    head = ("training", "test accuracy", "neutral without rationale", "neutral without others")
    worth = tabulate(lines, head, "pipe", disable_numparse=True)
    head = (
        "training",
        "metric",
        "class",
        "explainer",
        "n",
        "plain",
        "trained",
        "change",
        "p, Holm",
    )
    compared = [line for name, *_ in lines if name != "plain" for line in _lines(out, task, name)]
    return f"### {task}\n\n{worth}\n\n{tabulate(compared, head, 'pipe', disable_numparse=True)}\n"


def _lines(out: Path, task: str, training: str) -> Iterator[tuple[str, ...]]:
    plain, other = find_models([f"{task}-plain", f"{task}-{training}"], task, out / "records")
    labels = plain.first.record.model.labels
    explainers = list(plain.by_explainer)
    for metric in STUDIES[task].metrics:
        for label in sorted({row.label for row in plain.first.rows}):
            ids = examples_of([plain, other], right=True, label=label)
            for pair in compare_models(plain, other, metric, explainers, ids):
                p = "-" if pair.adjusted is None else f"{pair.adjusted:.2g}"
                change = f"{pair.second - pair.first:+.3f}"
                means = (f"{pair.first:.3f}", f"{pair.second:.3f}")
                where = (training, metric, labels[label], pair.explainer, str(pair.n))
                yield (*where, *means, change, p)


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
            masked_alike(asked.data, asked.out, task)
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

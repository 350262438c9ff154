"""Train plain models and models that learn from saliency, and compare them as Ghaeini et al. do.

    python benchmarks/saliency_learning.py --task litbank --data DATA [--seeds 3] [--weight 0.5]
        [--scores sum,gate,contrast] [--vectors minilm] [--width 100] [--epochs 4]
        [--max-tokens 100] [--results results/saliency]
    python benchmarks/saliency_learning.py --task hatexplain --data DATA --limit 400
        --measure bundled:hatexplain --measure models/hatexplain-saliency

Prints their Tables 1, 2 and 4 (the last column of which is `tpr_drop`), with what saliency accuracy
does not tell: the share of UNMARKED words with a positive saliency, and two measures of order. It
continues where it was stopped: a model that is there is not trained again, nor measured. With
`--measure`, it trains nothing and measures these models, whatever their architecture, instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from tabulate import tabulate

from faithbench.core.files import replace_file
from faithbench.data.tasks import load_task
from faithbench.models.evaluation import outcomes
from faithbench.models.model import load_model
from faithbench.stats import mcnemar_greater
from faithbench.training.card import is_finished
from faithbench.training.fit import fit
from faithbench.training.level_saliency import class_figures, measure_levels, measure_removal
from faithbench.training.recipe import Recipe, Splits, load_splits, usual_metric

PLAIN = "plain"
MEASURED_BY = ("sum", "gate")
Figures = Mapping[str, Any]


def study(splits: Splits, recipes: Mapping[str, Recipe], seeds: int, out: Path) -> list[Figures]:
    """Train and measure every recipe with every seed; returns the figures of each model."""
    return [
        _figures(splits, name, replace(recipe, seed=seed), out / f"{name}-{seed}")
        for seed in range(seeds)
        for name, recipe in recipes.items()
    ]


def _figures(splits: Splits, name: str, recipe: Recipe, folder: Path) -> Figures:
    file = folder / "figures.json"
    if file.is_file():
        known: Figures = json.loads(file.read_text())
        return known
    start = time.process_time()
    if not is_finished(folder):
        fit(splits, recipe, folder, _report(f"{name} {recipe.seed}"))
    trained = time.process_time()
    figures = {"row": name, "seed": recipe.seed, **measure(splits, str(folder))}
    figures["cpu_training"] = round(trained - start, 1)
    figures["cpu_measuring"] = round(time.process_time() - trained, 1)
    replace_file(file, f"{json.dumps(figures)}\n".encode())
    return figures


def measured(splits: Splits, models: Sequence[str]) -> list[Figures]:
    """Measure models that are trained already, each a row of its own."""
    return [{"row": model, "seed": 0, **measure(splits, model)} for model in models]


def measure(splits: Splits, name: str) -> dict[str, Any]:
    """Measure a trained model, a folder or a bundled one, on test; the last class is positive."""
    test = splits.test
    labels = test.task.labels
    model = load_model(name, labels=labels, kind=test.task.kind, device="cpu")
    gold = [example.label for example in test.examples]
    predicted = outcomes(model, test)
    return {
        "classes": asdict(class_figures(predicted, gold, len(labels) - 1)),
        "right": [int(p == g) for p, g in zip(predicted, gold, strict=True)],
        "removal": asdict(measure_removal(model, test)),
        "levels": {
            score: {
                name: asdict(level) for name, level in measure_levels(model, test, score).items()
            }
            for score in MEASURED_BY
        },
    }


def _report(name: str) -> Callable[[str, int, int], None]:
    def progress(stage: str, done: int, total: int) -> None:
        if done == total:
            print(f"{name}: {stage}", file=sys.stderr, flush=True)

    return progress


def class_table(found: Sequence[Figures]) -> str:
    """Table 1, with one-sided exact McNemar tests of each seed: is the model right more often?

    The tests are against the plain model of the same seed, where there is one.
    """
    plain = {figures["seed"]: figures for figures in found if figures["row"] == PLAIN}
    rows = []
    for name, group in _rows(found):
        names = ("precision", "recall", "f1", "accuracy")
        means = [mean(figures["classes"][key] for figures in group) for key in names]
        tested = [f for f in group if name != PLAIN and f["seed"] in plain]
        ps = [_p(figures, plain) for figures in tested]
        rows.append([name, *map(_number, means), ", ".join(ps)])
    return _table(["training", "P", "R", "F1", "accuracy", "McNemar p by seed"], rows)


def _p(figures: Figures, plain: Mapping[int, Figures]) -> str:
    first, second = figures["right"], plain[figures["seed"]]["right"]
    p = mcnemar_greater(first, second)
    up = sum(a > b for a, b in zip(first, second, strict=True))
    down = sum(a < b for a, b in zip(first, second, strict=True))
    return f"{'-' if p is None else f'{p:.2g}'} ({up}:{down})"


def level_table(found: Sequence[Figures], score: str) -> str:
    """Table 2 by one score: for each level, marked and unmarked words, top 1 and AUPRC."""
    rows = []
    for name, group in _rows(found):
        for level in group[0]["levels"][score]:
            values = [figures["levels"][score][level] for figures in group]
            means = [
                mean(v[key] for v in values) for key in ("marked", "unmarked", "top1", "auprc")
            ]
            seeds = ", ".join(_number(v["marked"]) for v in values)
            rows.append([name, level, *map(_number, means), seeds])
    header = ["training", "level", "marked > 0", "unmarked > 0", "top 1", "AUPRC", "marked by seed"]
    return _table(header, rows)


def removal_table(found: Sequence[Figures]) -> str:
    """Table 4: the true-positive rate before and after the rationale is removed.

    A model that finds no label before has no drop.
    """
    rows = []
    for name, group in _rows(found):
        removal = [figures["removal"] for figures in group]
        drops = [r["drop"] for r in removal]
        known = [drop for drop in drops if drop is not None]
        means = [mean(r[key] for r in removal) for key in ("before", "after")]
        means.append(mean(known) if known else None)
        rows.append([name, *map(_number, means), ", ".join(map(_number, drops))])
    return _table(["training", "TPR before", "TPR after", "tpr_drop", "tpr_drop by seed"], rows)


def _rows(found: Sequence[Figures]) -> list[tuple[str, list[Figures]]]:
    names = dict.fromkeys(figures["row"] for figures in found)
    return [(name, [f for f in found if f["row"] == name]) for name in names]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return tabulate(rows, header, tablefmt="github", disable_numparse=True)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".replace("0.", ".", 1)


def tables(found: Sequence[Figures]) -> str:
    """Return Tables 1 and 4, and Table 2 by each score."""
    levels = (f"Saliency by {score}:\n\n{level_table(found, score)}" for score in MEASURED_BY)
    return "\n\n".join([class_table(found), removal_table(found), *levels])


def main() -> None:
    """Parse, train, measure, print."""
    given = _parse()
    torch.set_num_threads(1)
    task = load_task(given.task)
    splits = load_splits(task, folder=given.data, limits=(None, None, given.limit))
    if given.measure:
        print(f"### {task.name}, {len(splits.test.examples)} test texts\n")
        print(tables(measured(splits, given.measure)))
        return
    plain = Recipe(
        method="full",
        metric=usual_metric(task),
        epochs=given.epochs,
        max_tokens=given.max_tokens,
        encoder_dropout=0.5,
        arch="cnn",
        vectors=given.vectors,
        width=given.width,
    )
    recipes = {PLAIN: plain} | {
        score: replace(plain, objectives=(f"saliency:score={score},weight={given.weight:g}",))
        for score in given.scores.split(",")
    }
    found = study(splits, recipes, given.seeds, given.results / task.name)
    cpu = sum(figures["cpu_training"] + figures["cpu_measuring"] for figures in found) / 60
    print(f"### {task.name}, {given.seeds} seeds, weight {given.weight:g}, {cpu:.1f} CPU minutes\n")
    print(tables(found))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="litbank")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--weight", type=float, default=0.5)
    parser.add_argument("--scores", default="sum,gate,contrast")
    parser.add_argument("--vectors", default="minilm")
    parser.add_argument("--width", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=None)
    parser.add_argument("--results", type=Path, default=Path("results/saliency"))
    parser.add_argument("--measure", action="append", metavar="MODEL")
    parser.add_argument("--limit", type=int, default=None, help="test texts, with --measure")
    given = parser.parse_args()
    # The figures of a study are kept: those of fewer texts would be taken for those of all.
    if given.limit is not None and not given.measure:
        parser.error("--limit goes with --measure")
    return given


if __name__ == "__main__":
    main()

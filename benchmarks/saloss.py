"""Train models with SaLoss and measure whether their explanations get better.

    python benchmarks/saloss.py train --data <data folder> [--out models/saloss] [--worker 0/2]
    python benchmarks/saloss.py measure --data <data folder> [--out models/saloss] [--worker 0/2]
    python benchmarks/saloss.py tables [--out models/saloss] [--no-write]

`train` makes the models of the study, those that matter most first; several workers share the
list. `measure` explains the same test texts with each model that is there. Both continue where
they were stopped. `tables` writes the section of RESULTS.md from what is there by then.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.data.tasks import load_task
from faithbench.training.fit import fit
from faithbench.training.recipe import Recipe, load_splits, usual_metric

PAPER_WEIGHTS = (1e-4, 1e-3, 1e-2)
SALIENCES = ("textrank", "uniform", "tfidf", "chi2")
LIMITS = {"sst2": None, "agnews": 5000, "semeval": 5000}
"""Training texts; one pass over them."""


@dataclass(frozen=True)
class Trained:
    """One model of the study; `salience` is empty for plain training."""

    task: str
    salience: str
    weight: float
    seed: int

    @property
    def folder(self) -> str:
        """The model's folder, below that of the study."""
        kind = f"{self.salience}-{self.weight:g}" if self.salience else "plain"
        return f"{self.task}/{kind}-seed{self.seed}"

    @property
    def recipe(self) -> Recipe:
        """All that is trained alike, and the objective that is not."""
        text = f"saloss:salience={self.salience},weight={self.weight!r}"
        return Recipe(
            seed=self.seed,
            metric=usual_metric(load_task(self.task)),
            epochs=1,
            objectives=(text,) if self.salience else (),
        )


def study() -> Iterator[Trained]:
    """Yield the models, those that matter most first."""
    yield Trained("sst2", "", 0, 0)
    for weight in (0.1, 1e-2, 1.0, 1e-3, 1e-4):
        yield Trained("sst2", "textrank", weight, 0)
    yield Trained("sst2", "uniform", 0.1, 0)
    for seed in (1, 2):
        yield Trained("sst2", "", 0, seed)
        yield Trained("sst2", "textrank", 0.1, seed)
        yield Trained("sst2", "uniform", 0.1, seed)
    for task in ("semeval", "agnews"):
        yield Trained(task, "", 0, 0)
        yield Trained(task, "textrank", 0.1, 0)
        yield Trained(task, "uniform", 0.1, 0)
    for salience in ("tfidf", "chi2"):
        for seed in (0, 1, 2):
            yield Trained("sst2", salience, 0.1, seed)
    for seed in (1, 2):
        yield Trained("sst2", "textrank", 1e-2, seed)
    for salience in ("uniform", "tfidf", "chi2"):
        for seed in (0, 1, 2):
            yield Trained("sst2", salience, 1e-2, seed)


def train(data: Path, out: Path, worker: tuple[int, int]) -> None:
    """Train a worker's share of the models that are not there yet."""
    number, count = worker
    for one in list(study())[number::count]:
        folder = out / one.folder
        if (folder / "card.json").exists() and not (folder / "run.json").exists():
            continue
        limits = (LIMITS[one.task], 1000, None)
        splits = load_splits(load_task(one.task), folder=data, limits=limits)
        print(one.folder, flush=True)
        card = fit(splits, one.recipe, folder, lambda *_: None)
        print(one.folder, card["dev_by_epoch"], card["test"], flush=True)


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else ""
    )
    parser.add_argument("command", choices=("train", "measure", "tables"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("models/saloss"))
    parser.add_argument("--worker", default="0/1", help="number of this worker / how many")
    asked = parser.parse_args()
    number, _, count = asked.worker.partition("/")
    if asked.command == "train":
        train(asked.data, asked.out, (int(number), int(count)))
    else:
        sys.exit("not yet")


if __name__ == "__main__":
    main()

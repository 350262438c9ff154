"""Train models with SaLoss and measure whether their explanations get better.

    python benchmarks/saloss.py train --data <data folder> [--out models/saloss]
    python benchmarks/saloss.py measure --data <data folder> [--out models/saloss]
    python benchmarks/saloss.py tables [--out models/saloss] [--no-write]

`train` makes the models of the study, those that matter most first. `measure` explains the same
test texts with each model that is trained. Both continue where they were stopped, and may run
several times at once: each takes what no other works on. `tables` writes the section of
RESULTS.md from what is there by then.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tabulate import tabulate

from faithbench.core.types import Floats
from faithbench.data.tasks import load_task
from faithbench.records.model_comparison import (
    ModelPair,
    ModelRecords,
    compare_models,
    examples_of,
    find_models,
    recorded_models,
)
from faithbench.training.card import is_finished
from faithbench.training.recipe import Recipe, load_splits, usual_metric

LIMITS = {"sst2": 6920, "semeval": 5000, "agnews": 5000}
"""Training texts; one pass over them."""
DEV = 1000
TEXTS = 200
EXPLAINERS = (
    "attention",
    "attention-x-gradient",
    "input-x-gradient",
    "integrated-gradients:steps=4",
    "random",
)
KINDS = ("textrank", "uniform", "tfidf", "chi2")
CONTROLS = tuple(f"salience:kind={kind}" for kind in KINDS)

Saliences = Mapping[str, Mapping[str, Floats]]


@dataclass(frozen=True)
class Trained:
    """One model of the study; `salience` is empty for plain training."""

    task: str
    salience: str = ""
    weight: float = 0
    seed: int = 0

    @property
    def setting(self) -> str:
        """The training without its seed."""
        return f"{self.salience}-{self.weight:g}" if self.salience else "plain"

    @property
    def folder(self) -> str:
        """The model's folder, below that of the study."""
        return f"{self.task}/{self.setting}-seed{self.seed}"

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
    yield Trained("sst2")
    for weight in (0.1, 1e-2, 1.0):
        yield Trained("sst2", "textrank", weight)
    yield Trained("sst2", "uniform", 0.1)
    for seed in (1, 2):
        yield Trained("sst2", seed=seed)
        yield Trained("sst2", "textrank", 0.1, seed)
        yield Trained("sst2", "uniform", 0.1, seed)
    for weight in (1e-3, 1e-4):
        yield Trained("sst2", "textrank", weight)
    for salience in ("tfidf", "chi2"):
        yield Trained("sst2", salience, 0.1)
    for task in ("semeval", "agnews"):
        yield Trained(task)
        yield Trained(task, "textrank", 0.1)
        yield Trained(task, "uniform", 0.1)
    for seed in (1, 2):
        for salience in ("tfidf", "chi2"):
            yield Trained("sst2", salience, 0.1, seed)
        yield Trained("sst2", "textrank", 1e-2, seed)
    for seed in (0, 1, 2):
        for salience in ("uniform", "tfidf", "chi2"):
            yield Trained("sst2", salience, 1e-2, seed)


@contextmanager
def claimed(out: Path, work: str) -> Iterator[bool]:
    """Say whether a piece of work is this process's to do; the claim ends with the process."""
    import fcntl

    file = out / ".claims" / work.replace("/", "-")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def train(data: Path, out: Path) -> None:
    """Train the models that are not there yet and that no other process is training."""
    from faithbench.training.fit import fit

    for one in study():
        folder = out / one.folder
        with claimed(out, f"train-{one.folder}") as mine:
            if not mine or is_finished(folder):
                continue
            limits = (LIMITS[one.task], DEV, None)
            splits = load_splits(load_task(one.task), folder=data, limits=limits)
            card = fit(splits, one.recipe, folder, lambda *_: None)
            print(one.folder, card["dev_by_epoch"], card["test"], flush=True)


def measure(data: Path, out: Path) -> None:
    """Explain test texts with every model that is trained by now."""
    from faithbench.api import evaluate

    records = out / "records"
    for one in study():
        with claimed(out, f"measure-{one.folder}") as mine:
            done = Path(one.folder).name in recorded_models(records, one.task)
            if done or not mine or not is_finished(out / one.folder):
                continue
            controls = CONTROLS if one == Trained(one.task) else ()
            evaluate(
                one.task,
                ",".join((*EXPLAINERS, *controls)),
                model=str(out / one.folder),
                data=data,
                limit=TEXTS,
                metrics="flip_fraction",
                human=False,
                seeds=1,
                jobs=1,
                results=records,
            )
            print(one.folder, flush=True)


def divergence(attention: Sequence[float], salience: Floats) -> float:
    """Return KL(attention, salience), both normalised over the tokens of a text."""
    alpha = np.array(attention) / math.fsum(attention)
    sigma = salience / salience.sum()
    there = alpha > 0
    return float((alpha[there] * np.log(alpha[there] / sigma[there])).sum())


def attention_facts(side: ModelRecords, saliences: Saliences) -> dict[str, float]:
    """Return the mean divergence of attention from each salience, and its share on special tokens.

    Both are read from the recorded scores of `attention`, which are those of the text's tokens.
    """
    rows = [row for stored in side.by_explainer["attention"] for row in stored.rows]
    facts = {
        kind: math.fsum(divergence(row.scores, by_id[row.id]) for row in rows) / len(rows)
        for kind, by_id in saliences.items()
    }
    return facts | {"special": math.fsum(1 - math.fsum(row.scores) for row in rows) / len(rows)}


def saliences_of(plain: ModelRecords) -> Saliences:
    """Return the salience of each text's tokens, as the controls beside the plain model have it."""
    controls = (
        stored for label, (stored, *_) in plain.by_explainer.items() if label.startswith("salience")
    )
    return {
        str(stored.record.explainer.settings["kind"]): {
            row.id: np.array(row.scores) for row in stored.rows
        }
        for stored in controls
    }


def settings_of(out: Path, task: str, measured: set[str]) -> dict[str, list[Trained]]:
    """Return the measured models of a task, seeds of the same training together, plain first.

    A seed counts once its plain model is measured as well.
    """
    grouped: dict[str, list[Trained]] = {}
    for one in study():
        both = {one.folder, Trained(task, seed=one.seed).folder}
        if one.task == task and {Path(folder).name for folder in both} <= measured:
            grouped.setdefault(one.setting, []).append(one)
    return grouped


def side_of(records: Path, models: Sequence[Trained]) -> ModelRecords:
    """Find the records of models that differ in their seed alone, as one side."""
    names = ",".join(Path(one.folder).name for one in models)
    (side,) = find_models([names], models[0].task, records)
    return side


def training_table(out: Path, groups: Mapping[str, Sequence[Trained]]) -> str:
    """Return one line per training: scores of the model, and where its attention lies.

    The change is that of its divergence from its own salience against plain models of its seeds.
    """
    records = out / "records"
    saliences = saliences_of(side_of(records, groups["plain"][:1]))
    lines = []
    for setting, models in groups.items():
        cards = [json.loads((out / one.folder / "card.json").read_text()) for one in models]
        score = np.mean([card["test"][card["recipe"]["metric"]] for card in cards])
        facts = attention_facts(side_of(records, models), saliences)
        own = models[0].salience or "textrank"
        plain = attention_facts(side_of(records, plain_of(groups, models)), saliences)
        change = f"{facts[own] / plain[own] - 1:+.0%}"
        apart = (facts["textrank"], facts["uniform"], facts[own])
        lines.append((setting, len(models), score, *apart, change, facts["special"]))
    head = ("training", "seeds", "test score", "KL to TextRank", "KL to uniform", "KL to its own")
    return tabulate(
        lines, (*head, "change", "on special tokens"), "pipe", floatfmt=".3f", disable_numparse=[6]
    )


def plain_of(groups: Mapping[str, Sequence[Trained]], models: Sequence[Trained]) -> list[Trained]:
    """Return the plain models of the same seeds."""
    seeds = {one.seed for one in models}
    return [one for one in groups["plain"] if one.seed in seeds]


def flip_table(out: Path, groups: Mapping[str, Sequence[Trained]]) -> str:
    """Return a line per explainer and training: flip fractions, and both tests against plain."""
    lines = []
    for setting, models in groups.items():
        if setting == "plain":
            continue
        plain, side = (side_of(out / "records", m) for m in (plain_of(groups, models), models))
        labels = [label for label in side.by_explainer if label in plain.by_explainer]
        ids = examples_of([plain, side])
        pairs = compare_models(plain, side, "flip_fraction", labels, ids)
        lines += [(setting, *_cells(pair)) for pair in pairs]
    head = ("training", "explainer", "plain", "trained", "change", "p paired, Holm", "p rank-sum")
    return tabulate(lines, head, "pipe", disable_numparse=True)


def _cells(pair: ModelPair) -> tuple[str, ...]:
    return (
        pair.explainer,
        f"{pair.first:.3f}",
        f"{pair.second:.3f}",
        f"{pair.second - pair.first:+.3f}",
        _p(pair.adjusted),
        _p(pair.rank_sum.p),
    )


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"


def tables(out: Path, task: str) -> str:
    """Return both tables of a task; a training is compared with plain ones of its own seeds."""
    records = out / "records"
    groups = settings_of(out, task, recorded_models(records, task))
    n = len(side_of(records, groups["plain"]).first.rows)
    told = f"{LIMITS[task]} training texts, one pass; {n} test texts"
    return (
        f"### {task}: {told}\n\n{training_table(out, groups)}\n\n"
        f"Flip fraction, lower is better:\n\n{flip_table(out, groups)}\n"
    )


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("train", "measure", "tables"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("models/saloss"))
    parser.add_argument("--no-write", action="store_true")
    asked = parser.parse_args()
    if asked.command != "tables":
        work = train if asked.command == "train" else measure
        work(asked.data, asked.out)
        return
    done = [task for task in LIMITS if (asked.out / Trained(task).folder / "card.json").exists()]
    body = "\n".join(tables(asked.out, task) for task in done)
    if asked.no_write:
        print(body)
    else:
        from tables import write_section

        write_section("SaLoss", "python benchmarks/saloss.py tables", body, timed=False)


if __name__ == "__main__":
    main()

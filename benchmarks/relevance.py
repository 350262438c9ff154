"""Relevance pass: its cost, what batching saves, and how precision moves the ranking.

Run: python benchmarks/relevance.py --data <data folder>
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from scipy.stats import kendalltau
from tables import best_seconds, write_section
from tabulate import tabulate

from faithbench.core.types import Encoding, rank
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.passes.capture import run_capture
from faithbench.explainers.passes.lrp import Products, run_relevance
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model, load_model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute


def main() -> None:
    """Measure on SST sentences with the bundled model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--examples", type=int, default=200)
    options = parser.parse_args()
    task = load_task("sst2")
    data = load_dataset(task, source="folder", folder=options.data, limit=options.examples)
    model = load_model("bundled:sst2", labels=task.labels)
    encodings = sorted((encode(model, e) for e in data.examples), key=lambda e: len(e.ids))
    middle = encodings[len(encodings) // 2 - 8 : len(encodings) // 2 + 8]
    short = encodings[len(encodings) // 8 : len(encodings) // 8 + 16]
    lines = [
        *cost(model, middle),
        *batching(model, short),
        *batching(model, middle),
        *precision(model, encodings),
        *mixed(model, encodings),
    ]
    body = tabulate(lines, headers=("what", "value"), tablefmt="github", disable_numparse=True)
    command = f"python benchmarks/relevance.py --data <data folder> --examples {len(encodings)}"
    write_section("Relevance pass", command, body)


def cost(model: Model, encodings: list[Encoding]) -> list[tuple[str, str]]:
    """Compare the relevance pass with one forward + backward, at both precisions."""
    batch = collate(model, encodings, [0] * len(encodings), [0] * len(encodings))
    seconds = {}
    products = Products(torch.float32, model.magnitudes)
    wide = model.eager(torch.float64)
    # In turns, so that what else the machine does falls on both alike.
    for _ in range(3):
        for name, kind in (("float64", None), ("mixed", products)):
            taken = best_seconds(lambda k=kind: run_relevance(wide, batch, products=k), repeats=2)
            seconds["turn", name] = min(taken, seconds.get(("turn", name), taken))
    for name, dtype in (("float32", torch.float32), ("float64", torch.float64)):
        network = model.eager(dtype)
        seconds["pass", name] = best_seconds(lambda n=network: run_capture(n, batch))
        seconds["relevance", name] = best_seconds(lambda n=network: run_relevance(n, batch))
    ratio = {k: seconds["relevance", k] / seconds["pass", k] for k in ("float32", "float64")}
    crossed = seconds["relevance", "float64"] / seconds["pass", "float32"]
    return [
        ("relevance pass / (forward + backward), float32", f"{ratio['float32']:.2f}"),
        ("relevance pass / (forward + backward), float64", f"{ratio['float64']:.2f}"),
        ("relevance pass in float64 / (forward + backward) in float32", f"{crossed:.2f}"),
        (
            "relevance pass in float64 / in mixed precision",
            f"{seconds['turn', 'float64'] / seconds['turn', 'mixed']:.2f}",
        ),
    ]


def batching(model: Model, encodings: list[Encoding]) -> list[tuple[str, str]]:
    """Compare lrp-mask in float64 on a batch of 16 with sixteen single runs, per example."""
    (chosen,) = find_explainers("lrp-mask:precision=float64")

    def explain(part: list[Encoding]) -> list[np.ndarray]:
        batch = collate(model, part, [0] * len(part), [0] * len(part))
        session = Session(model)
        found = attribute(session, chosen, batch)
        session.drop_passes()
        return [a.scores for a in found]

    together = best_seconds(lambda: explain(encodings), repeats=3)
    alone = best_seconds(lambda: [explain([e]) for e in encodings], repeats=3)
    batched, single = explain(encodings), [explain([e])[0] for e in encodings]
    apart = max(np.abs(b - s).max() / np.abs(s).max() for b, s in zip(batched, single, strict=True))
    same = sum((rank(b) == rank(s)).all() for b, s in zip(batched, single, strict=True))
    tokens = sum(len(e.ids) for e in encodings) / len(encodings)
    what = f"16 sentences of {tokens:.0f} tokens, lrp-mask alone and in one batch: "
    return [
        (what + "ratio of seconds", f"{alone / together:.2f}"),
        (what + "largest relative difference", f"{apart:.1e}"),
        (what + "same ranking", f"{same} of {len(encodings)}"),
    ]


def precision(model: Model, encodings: list[Encoding]) -> list[tuple[str, str]]:
    """Compare token rankings by a float32 and a float64 relevance pass of one float32 model."""
    scores = {}
    for name in ("float32", "float64"):
        (chosen,) = find_explainers(f"lrp-mask:precision={name}")
        scores[name] = []
        for start in range(0, len(encodings), 16):
            part = encodings[start : start + 16]
            batch = collate(model, part, [0] * len(part), [0] * len(part))
            session = Session(model)
            scores[name] += [a.scores for a in attribute(session, chosen, batch)]
            session.drop_passes()
    pairs = list(zip(scores["float32"], scores["float64"], strict=True))
    taus = [float(kendalltau(a, b).statistic) for a, b in pairs if len(a) > 1]
    same = np.mean([(rank(a) == rank(b)).all() for a, b in pairs])
    moved = [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs]
    return [
        (
            "float32 against float64: median / lowest Kendall tau",
            f"{np.median(taus):.4f} / {min(taus):.4f}",
        ),
        ("float32 against float64: identical rankings", f"{same:.1%} of {len(pairs)}"),
        (
            "float32 against float64: median / largest relative move of a score",
            f"{np.median(moved):.1e} / {max(moved):.1e}",
        ),
    ]


FORMS = (
    "lrp:",
    "lrp-partial:",
    "lrp-rollout:",
    "lrp-mask:",
    "lrp-mask:thresholds=paper,",
    "lrp-mask:thresholds=paper,released=true,",
    "lrp-mask:thresholds=paper,mask=random,",
)


def mixed(model: Model, encodings: list[Encoding]) -> list[tuple[str, str]]:
    """Compare rankings and scores of mixed precision with float64, for every form of the board."""
    scores: dict[tuple[str, str], list[np.ndarray]] = {}
    for start in range(0, len(encodings), 16):
        part = encodings[start : start + 16]
        batch = collate(model, part, [0] * len(part), list(range(start, start + len(part))))
        session = Session(model)
        for form in FORMS:
            for name in ("float64", "mixed"):
                (chosen,) = find_explainers(f"{form}precision={name}")
                rows = [a.scores for a in attribute(session, chosen, batch)]
                scores.setdefault((form, name), []).extend(rows)
        session.drop_passes()
    lines = []
    for form in FORMS:
        pairs = list(zip(scores[form, "mixed"], scores[form, "float64"], strict=True))
        same = sum((rank(a) == rank(b)).all() for a, b in pairs)
        moved = max(float(np.abs(a - b).max()) for a, b in pairs)
        parts = max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)
        what = f"mixed precision against float64, {form.rstrip(':,')}: "
        lines.append((what + "identical rankings", f"{same} of {len(pairs)}"))
        lines.append((what + "largest move of a score, relative", f"{moved:.1e}, {parts:.1e}"))
    return lines


if __name__ == "__main__":
    main()

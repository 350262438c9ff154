"""Neighbours of 10,000 short documents: seconds of both kinds, and of the embedding before one.

Documents are sentences of SST and the beginnings of AG's articles; classes are the gold labels.
All times are CPU seconds of one thread.

Run: python benchmarks/neighbours.py --data <data folder>
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from tables import write_section
from tabulate import tabulate

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.metrics.neighbours import Neighbours, lexical_neighbours, semantic_neighbours
from faithbench.metrics.ngrams import words_in
from faithbench.models.sentence_encoder import embed

Value = TypeVar("Value")
WORDS = 25


def main() -> None:
    """Measure everything and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts, classes = _documents(options.data, options.documents)
    one = ["all"] * len(texts)
    lexical_neighbours(texts[:100], one[:100])  # scipy loads outside the clock
    lines: list[tuple[str, str, str]] = []

    def measure(what: str, work: Callable[[], Value]) -> Value:
        start = time.process_time()
        found = work()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes on Linux
        lines.append((what, f"{time.process_time() - start:.1f}", f"{peak:.2f} GB"))
        return found

    kinds = len(set(classes))
    by_words = measure(f"lexical, {kinds} classes", lambda: lexical_neighbours(texts, classes))
    measure("lexical, one class: all pairs", lambda: lexical_neighbours(texts, one))
    points = measure("embedding by the bundled encoder", lambda: embed(texts, device="cpu"))
    found = measure(f"semantic, {kinds} classes", lambda: semantic_neighbours(points, classes))
    measure("semantic, one class: all pairs", lambda: semantic_neighbours(points, one))
    words = np.mean([len(words_in(text)) for text in texts])
    table = tabulate(
        lines,
        headers=("what", "CPU seconds", "largest memory so far"),
        tablefmt="github",
        disable_numparse=True,
    )
    said = (
        f"{len(texts)} documents of {words:.0f} words on average. Of the three nearest, "
        f"{_shared(by_words, found):.0%} are the same by words and by meaning."
    )
    command = "python benchmarks/neighbours.py --data <data folder>"
    write_section("Neighbours", command, f"{said}\n\n{table}")


def _documents(folder: Path, count: int) -> tuple[list[str], list[str]]:
    """Take half of the documents from each task, cut after some words."""
    texts, classes = [], []
    for name in ("sst2", "agnews"):
        task = load_task(name)
        data = load_dataset(task, source="folder", split="train", folder=folder, limit=count // 2)
        for example in data.examples:
            texts.append(" ".join(example.text.split()[:WORDS]))
            classes.append(f"{name} {task.labels[example.label]}")
    return texts, classes


def _shared(a: Neighbours, b: Neighbours) -> float:
    return float(np.mean([len(set(x) & set(y)) / 3 for x, y in zip(a, b, strict=True)]))


if __name__ == "__main__":
    main()

"""How explainers grow with the length of a text: CPU seconds, here and in another checkout.

Run: python benchmarks/lengths.py --against <checkout>

Every measurement is a process of its own with one thread, and checkouts take turns.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
LENGTHS = (64, 128, 256, 512)
WORDS = ("the", "film", "was", "a", "good", "one", "and", "i", "liked", "its", "plot")


def main() -> None:
    """Measure in every checkout, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--against", type=Path, help="a checkout of the commit before")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure()))
        return
    from tables import write_section
    from tabulate import tabulate

    checkouts = {} if options.against is None else {"before": options.against.resolve()}
    checkouts["now"] = ROOT
    taken: dict[str, list[dict[str, list[float]]]] = {name: [] for name in checkouts}
    for _ in range(options.rounds):
        for name, checkout in checkouts.items():
            taken[name].append(_measured(checkout))
    lines = []
    for what in taken["now"][0]:
        for name, rounds in taken.items():
            best = [min(values) for values in zip(*(one[what] for one in rounds), strict=True)]
            growth = math.log(best[-1] / best[0], LENGTHS[-1] / LENGTHS[0])
            last = math.log2(best[-1] / best[-2])
            seconds = [f"{value:.3f}" for value in best]
            lines.append([what, name, *seconds, f"{growth:.2f}", f"{last:.2f}"])
    ends = (f"exponent {LENGTHS[0]}-{LENGTHS[-1]}", f"{LENGTHS[-2]}-{LENGTHS[-1]}")
    headers = ("CPU seconds per text of", "", *map(str, LENGTHS), *ends)
    body = (
        f"Bundled model of imdb, one thread, the least of {options.rounds} rounds.\n\n"
        + tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True)
    )
    write_section("Length of a text", "python benchmarks/lengths.py --against <checkout>", body)


def _measured(checkout: Path) -> dict[str, list[float]]:
    """Measure on the package of a checkout, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, __file__, "--inside"],
        env=environment, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    seconds: dict[str, list[float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return seconds


def measure() -> dict[str, list[float]]:
    """Return the CPU seconds of each length: a forward pass with attention, and explainers."""
    import torch

    from faithbench.core.types import Example
    from faithbench.data.tasks import load_task
    from faithbench.explainers.selection import find_explainers
    from faithbench.models.encoding import collate, encode
    from faithbench.models.model import load_model
    from faithbench.models.session import Session

    model = load_model("bundled:imdb", labels=load_task("imdb").labels)
    network = model.eager()
    seconds: dict[str, list[float]] = {}
    for length in LENGTHS:
        text = " ".join([WORDS[i % len(WORDS)] for i in range(length - 2)])
        encoding = encode(model, Example(id="text", text=text, label=0))
        assert len(encoding.ids) == length
        batch = collate(model, [encoding], [0], [0])

        def forward(batch=batch):  # type: ignore[no-untyped-def]
            with torch.no_grad():
                network(batch.ids, batch.attention, batch.types, output_attentions=True)

        works = {"forward with attention": forward}
        for name in ("alti", "attention"):
            (chosen,) = find_explainers(name)

            def explain(explainer=chosen.explainer, batch=batch):  # type: ignore[no-untyped-def]
                explainer(Session(model), batch)

            works[name] = explain
        for name, work in works.items():
            seconds.setdefault(name, []).append(_best(work))
    return seconds


def _best(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the shortest of several CPU timings, after one call outside the clock."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()

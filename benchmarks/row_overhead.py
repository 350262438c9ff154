"""CPU time of Python around a row: erasing, packing and scoring, with a network that does nothing.

Run: python benchmarks/row_overhead.py --data <data folder> [--against <checkout>]

The network is replaced by one that returns random logits at once, so that all that is left is what
this package does for a row: plans of metrics, erased rows, keys, packs, and metric values. Every
measurement is a process of its own; checkouts take turns, and the least of the rounds counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPLAINERS = 6
"""Attributions per text, of random scores."""


def main() -> None:
    """Measure here and in another checkout, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="a checkout of the commit before")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-print", action="store_true", help="leave RESULTS.md as it is")
    parser.add_argument("--inside", metavar="TASK,LIMIT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        task, limit = options.inside.split(",")
        print(json.dumps(measure(task, int(limit), options.data)))
        return
    checkouts = [ROOT] if options.against is None else [options.against.resolve(), ROOT]
    lines = []
    for name, task, limit in (("SST", "sst2", 32), ("IMDb", "imdb", 4)):
        taken: list[list[dict[str, Any]]] = [[] for _ in checkouts]
        for _ in range(options.rounds):
            for found, checkout in zip(taken, checkouts, strict=True):
                found.append(_measured(checkout, task, limit, options.data))
        best = [min(one["microseconds"] for one in rounds) for rounds in taken]
        if len({one["digest"] for rounds in taken for one in rounds}) > 1:
            raise SystemExit("the checkouts do not give the same values")
        rows = taken[0][0]["rows"]
        ratio = f"{best[0] / best[-1]:.2f}" if len(best) > 1 else "-"
        lines.append([f"{limit} {name}", rows, *(f"{value:.0f}" for value in best), ratio])
    from tables import write_section
    from tabulate import tabulate

    headers = ["texts", "distinct rows", "us per row", "times as fast"]
    if len(checkouts) > 1:
        headers[2:3] = ["us per row before", "now"]
    table = str(tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True))
    if options.only_print:
        print(table)
        return
    body = (
        "CPU time of one thread around a row through a network that does nothing: the "
        f"faithfulness metrics of {EXPLAINERS} explainers with random scores. Values are equal to "
        f"the bit; the least of {options.rounds} rounds in which the checkouts take turns. Laying "
        "rows out is counted; encoders that do it themselves, as before packs, hide it.\n\n"
        f"{table}"
    )
    command = "python benchmarks/row_overhead.py --data <data folder> --against <checkout>"
    write_section("Python around a row", command, body)


def _measured(checkout: Path, task: str, limit: int, data: Path) -> dict[str, Any]:
    """Measure the package of a checkout, in a process of its own."""
    paths = [str(checkout), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    command = [sys.executable, __file__, "--inside", f"{task},{limit}", "--data"]
    done = subprocess.run(
        [*command, str(data.resolve())],
        env=environment, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


class Idle:
    """A fast encoder that packs rows as ever, but gives each a logit drawn by its ids."""

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder

    def pack(self, rows: Sequence[Any]) -> Any:
        """Pack rows as the encoder does."""
        return self.encoder.pack(rows)

    def __call__(self, pack: Any, *_: Any) -> Any:
        """Return logits that are as good as random, but the same for the same row."""
        import torch

        ids = getattr(pack, "ids", pack)  # before packs there were, ids came alone
        mixed = (ids * torch.arange(1, ids.shape[1] + 1)).sum(dim=1)
        first = (mixed % 1009).float() / 504 - 1
        return torch.stack([first, -first], dim=1)


def measure(task_name: str, limit: int, data: Path) -> dict[str, Any]:
    """Score random attributions; return microseconds and rows, and a digest of the values."""
    import hashlib

    import numpy as np

    from faithbench.core.types import Attribution
    from faithbench.data.dataset import load_dataset
    from faithbench.data.tasks import load_task
    from faithbench.metrics.registry import case_metrics, find_metrics
    from faithbench.models.encoding import encode
    from faithbench.models.engine import Engine
    from faithbench.models.model import load_model
    from faithbench.models.predictions import predictions
    from faithbench.run.score import score

    task = load_task(task_name)
    dataset = load_dataset(task, source="folder", folder=data, limit=limit)
    model = load_model("bundled:sst2", labels=("negative", "positive"))
    encodings = [encode(model, example, task.evidence) for example in dataset.examples]
    draw = np.random.default_rng(0)
    metrics = case_metrics(find_metrics("faithfulness,-answer_recall_at_20"))
    seconds, rows, values = 0.0, 0, []
    for part in (encodings[:2], *(encodings[i : i + 8] for i in range(0, len(encodings), 8))):
        engine = Engine(model)
        engine.__dict__["_fast"] = Idle(engine._fast)
        predicted = predictions(engine, part)
        attributions = [
            Attribution(e, p.target, draw.normal(size=len(e.ids)), 0.0, 0, 0)
            for _ in range(EXPLAINERS)
            for e, p in zip(part, predicted, strict=True)
        ]
        full = [p.log_probability for p in predicted] * EXPLAINERS
        known, start = engine.distinct, time.process_time()
        scored = score(engine, attributions, full, metrics, "mask")
        taken = time.process_time() - start
        values += [one.values for one in scored]
        if len(values) > len(encodings[:2]) * EXPLAINERS:  # the first part only warms up
            seconds += taken
            rows += engine.distinct - known
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return {"microseconds": seconds / rows * 1e6, "rows": rows, "digest": digest}


if __name__ == "__main__":
    main()

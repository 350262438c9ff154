"""How far float32 moves the scores of each explainer from float64, on the bundled model.

Run: python benchmarks/precision.py
"""

from __future__ import annotations

import argparse

import numpy as np
from tables import write_section
from tabulate import tabulate

from faithbench.core.types import rank
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.registry import EXPLAINERS
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate, encode
from faithbench.models.model import load_model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute

QUICK = {"lime": "lime:samples=64", "kernel-shap": "kernel-shap:samples=64"}


def main() -> None:
    """Explain bundled sentences at both precisions and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--examples", type=int, default=32)
    options = parser.parse_args()
    task = load_task("sst2")
    data = load_dataset(task, source="bundled", limit=options.examples)
    scores: dict[str, dict[str, list[np.ndarray]]] = {}
    for dtype in ("float32", "float64"):
        model = load_model("bundled:sst2", labels=task.labels, dtype=dtype)
        encodings = sorted((encode(model, e) for e in data.examples), key=lambda e: len(e.ids))
        for name in EXPLAINERS:
            (chosen,) = find_explainers(QUICK.get(name, name))
            found = []
            for start in range(0, len(encodings), 16):
                part = encodings[start : start + 16]
                targets = [e.example.label for e in part]
                batch = collate(model, part, targets, list(range(len(part))))
                session = Session(model)
                found += [a.scores for a in attribute(session, chosen, batch)]
                session.drop_passes()
                session.clear()
            scores.setdefault(name, {})[dtype] = found
    lines = [_line(name, both["float32"], both["float64"]) for name, both in scores.items()]
    headers = ("explainer", "median move", "largest move", "largest score there", "same ranking")
    body = (
        "Largest change of a score, as a share of the text's largest score. Where that is almost "
        "0, a share says little.\n\n"
    ) + tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True)
    write_section("float32 against float64", "python benchmarks/precision.py", body)


def _line(name: str, low: list[np.ndarray], high: list[np.ndarray]) -> tuple[str, ...]:
    pairs = list(zip(low, high, strict=True))
    moves = [np.abs(a - b).max() / max(np.abs(b).max(), 1e-30) for a, b in pairs]
    same = sum((rank(a) == rank(b)).all() for a, b in pairs)
    most = int(np.argmax(moves))
    return (
        name,
        f"{np.median(moves):.1e}",
        f"{moves[most]:.1e}",
        f"{np.abs(high[most]).max():.1e}",
        f"{same} of {len(pairs)}",
    )


if __name__ == "__main__":
    main()

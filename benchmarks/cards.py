"""Measure the bundled models again, and rewrite the measured part of their cards.

    python benchmarks/cards.py DATA [task ...]

The data must be those the card names; everything else on the card stays as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from faithbench.cli.display import progress_on
from faithbench.core.errors import FaithbenchError
from faithbench.data.tasks import load_task
from faithbench.models.files.weights import BUNDLED, read_card
from faithbench.training.card import measured, write_card
from faithbench.training.recipe import load_splits


def measure_again(task: str, data: Path) -> dict[str, float]:
    """Score one bundled model on the rows its card names, and write what is found."""
    folder = BUNDLED / task
    card = read_card(folder)
    wanted = {name: facts["n"] for name, facts in card["data"].items()}
    limits = (wanted["train"], wanted["dev"], wanted["test"])
    splits = load_splits(load_task(task), source="folder", folder=data, limits=limits)
    for name, part in vars(splits).items():
        found = {"n": len(part.examples), "sha256": part.sha256}
        if found != {key: card["data"][name][key] for key in found}:
            raise FaithbenchError(f"{task}: split {name} is not the card's; found {found}")
    with progress_on(Console()) as progress:
        facts = measured(folder, splits.train, splits.test, "cpu", progress)
    write_card(card | facts, folder)
    scores: dict[str, float] = facts["test"]
    return scores


def main() -> None:
    """Measure the models named on the command line, or all of them."""
    root, *names = sys.argv[1:]
    for name in names or sorted(p.parent.name for p in BUNDLED.glob("*/card.json")):
        print(name, measure_again(name, Path(root)))


if __name__ == "__main__":
    main()

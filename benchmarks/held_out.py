"""Do honest explainers keep their gain on held-out sentences, as submissions are asked to?

    python benchmarks/held_out.py [--data FOLDER] [--draws 3]

Each explainer's AOPC on the board's sentences of bundled sst2 stands for a record, and is set
beside that on spliced sentences, on the other bundled ones and, with --data, on those of a folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tabulate import tabulate

from benchmarks.tables import write_section
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.records.own_examples import RECORDS, MeasuredOn, own_examples
from faithbench.submissions.held_out import Aopc, Bars, aopc_of, compared, held_out_sentences
from faithbench.submissions.measure import load_setup

ROOT = Path(__file__).parents[1]
MODEL = "bundled:sst2"
BARS = ("leave-one-out", "random")
EXPLAINERS = (
    "occlusion", "deep-shap", "attn-lrp", "gae", "attention", "gradient", "input-x-gradient",
    "rollout", "value-zeroing", "first-tokens",
)  # fmt: skip
SENTENCES = 80


def sentences(data: Path | None, draws: int) -> Iterator[tuple[str, Dataset]]:
    """Yield the board's sentences first, then the others, with their names."""
    bundled = load_dataset(load_task("sst2"), source="bundled")
    own = set(own_examples(ROOT / RECORDS, MeasuredOn("sst2", "bundled", "test", MODEL)))
    yield "board", replace(bundled, examples=tuple(e for e in bundled.examples if e.id in own))
    rest = tuple(e for e in bundled.examples if e.id not in own)
    yield "other bundled", replace(bundled, examples=rest)
    for seed in range(draws):
        yield f"spliced {seed}", held_out_sentences(bundled, None, SENTENCES, seed)
    if data is not None:
        yield "folder", held_out_sentences(bundled, data, SENTENCES, 0)


def measured(data: Dataset) -> dict[str, Aopc]:
    """Return the AOPC of all explainers on some sentences."""
    explainers = find_explainers(",".join((*BARS, *EXPLAINERS)), rationale=False)
    columns = aopc_of(explainers, load_setup(data, MODEL), lambda *_: None)
    return {one.name: column for one, column in zip(explainers, columns, strict=True)}


def main() -> None:
    """Measure all, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    (_, board), *others = (
        (name, measured(data)) for name, data in sentences(options.data, options.draws)
    )
    known = Bars(*(board[name] for name in BARS))
    rows, least = [], 1.0
    for name in (*EXPLAINERS, "random"):
        held = [
            compared(board[name], known, there[name], Bars(*(there[bar] for bar in BARS)))
            for _, there in others
        ]
        least = min(least, *(one.p_lower for one in held))
        cells = [f"{one.held_out:+.3f} ({one.p_lower:.2f})" for one in held]
        rows.append([name, f"{held[0].recorded:+.3f}", *cells])
    table = tabulate(rows, ["explainer", "board", *(n for n, _ in others)], tablefmt="github")
    write_section(
        "Held-out sentences",
        "PYTHONPATH=. python benchmarks/held_out.py --data <data folder>",
        f"Gain in AOPC over random orders on bundled sst2 and, in brackets, the one-sided p of "
        f"falling behind the board's sentences, relative to leave-one-out. At .001 a submission is "
        f"refused; the least here is {least:.2f}.\n\n{table}",
    )


if __name__ == "__main__":
    main()

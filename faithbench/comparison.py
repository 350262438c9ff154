"""What a run says beyond its table: paired tests, and a few explained sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from faithbench.data import Dataset
from faithbench.display import heat_map
from faithbench.encoding import encode
from faithbench.models import Model
from faithbench.run import Outcome
from faithbench.single import say
from faithbench.stats import holm, signed_rank
from faithbench.types import Example


def comparison_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Compare the first explainer with each other one, per metric, paired by example."""
    if len(outcomes) < 2:
        return
    first, others = outcomes[0], outcomes[1:]
    yield f"\n{first.chosen.label} against the others (Wilcoxon signed-rank, Holm over the lines):"
    names = [name for name, facts in first.record.metrics.items() if facts.n]
    pairs = [(name, other) for name in names for other in others]
    tests = [
        signed_rank(
            [row.values[name] for row in first.rows], [row.values[name] for row in other.rows]
        )
        for name, other in pairs
    ]
    adjusted = iter(holm([t.p for t in tests if t.p is not None]))
    for (name, other), test in zip(pairs, tests, strict=True):
        facts = first.record.metrics[name]
        if test.p is None:
            yield f"  {name:8} {other.chosen.label:32} no test: {test.reason}"
            continue
        lead = test.effect if facts.higher_is_better else -test.effect
        verdict = "better" if lead > 0 else "worse " if lead < 0 else "equal "
        yield (
            f"  {name:8} {other.chosen.label:32} {verdict} "
            f"p = {next(adjusted):.2g}, effect {test.effect:+.2f}"
        )


def show_examples(
    console: Console, model: Model, data: Dataset, outcome: Outcome, count: int = 3
) -> None:
    """Print heat maps of a few examples, spread over the data."""
    console.print(
        f"\n{outcome.chosen.label} on {min(count, len(outcome.rows))} of the examples "
        "(orange for the prediction, blue against):",
        highlight=False,
    )
    labels = data.task.labels
    places = np.linspace(0, len(outcome.rows) - 1, min(count, len(outcome.rows))).round()
    for place in places.astype(int):
        row, example = outcome.rows[place], data.examples[place]
        encoding = encode(model, example, data.task.evidence)
        right = "right" if row.right else f"wrong, it is {_truth(labels, example)}"
        said = f"{row.id}: {say(labels, encoding, row.target)}"
        console.print(Text(f"{said} (p = {row.probability:.3f}, {right})", style="dim"))
        console.print(heat_map(encoding, np.array(row.scores)))


def _truth(labels: Sequence[str], example: Example) -> str:
    return repr(example.answers[0].text) if example.answers else labels[example.label]

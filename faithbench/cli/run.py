"""What a run says beyond its table: paired tests, and a few explained sentences."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.text import Text

from faithbench.cli.display import caption, progress_on, results_tables
from faithbench.cli.heat_map import heat_map
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.run.finish import Outcome
from faithbench.run.one_text import say
from faithbench.run.request import Request, make_job
from faithbench.stats.pairwise import ALPHA, holm, paired_tests
from faithbench.stats.signed_rank import PairedTest


@dataclass(frozen=True)
class _Line:
    """One metric of one other explainer: the test, and p after Holm."""

    name: str
    other: str
    test: PairedTest
    adjusted: float | None
    better: bool | None


def comparison_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Compare the first explainer with each other one, per metric, paired by example."""
    if len(outcomes) < 2:
        return
    lines = _lines(outcomes)
    tested = [line for line in lines if line.adjusted is not None]
    mcnemar = any(line.test.name == "McNemar" for line in tested)
    yield (
        f"\n{outcomes[0].selected.label} against the others (Wilcoxon signed-rank"
        f"{', for 0/1 metrics exact McNemar' if mcnemar else ''}; "
        f"p after Holm over {len(tested)} tests):"
    )
    for outcome in outcomes[1:]:
        own = [line for line in lines if line.other == outcome.selected.label]
        clear = [line for line in own if line.adjusted is not None and line.adjusted < ALPHA]
        parts = {
            "better": [_said(line) for line in clear if line.better],
            "worse": [_said(line) for line in clear if line.better is False],
            "no clear difference": [
                line.name for line in own if line.adjusted is not None and line not in clear
            ],
            **_untested(own),
        }
        yield f"  {outcome.selected.label}"
        for verdict, said in parts.items():
            if said:
                text = f"{verdict}: {', '.join(said)}"
                yield textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="      ")


def _lines(outcomes: Sequence[Outcome]) -> list[_Line]:
    """Test every metric that has a direction, against every other explainer."""
    first, others = outcomes[0], outcomes[1:]
    facts = {
        n: f for n, f in first.record.metrics.items() if f.higher_is_better is not None and f.n
    }
    pairs = [(name, other) for name in facts for other in others]
    columns = {n: [[row.values[n] for row in o.rows] for o in outcomes] for n in facts}
    against = [(0, place) for place in range(1, len(outcomes))]
    tests = [test for n in facts for test in paired_tests(columns[n], against)]
    adjusted = iter(holm([t.p for t in tests if t.p is not None]))
    return [
        _Line(
            name,
            other.selected.label,
            test,
            None if test.p is None else next(adjusted),
            None if test.effect == 0 else (test.effect > 0) == facts[name].higher_is_better,
        )
        for (name, other), test in zip(pairs, tests, strict=True)
    ]


def _said(line: _Line) -> str:
    return f"{line.name} (p = {line.adjusted:.2g}, effect {line.test.effect:+.2f})"


def _untested(lines: Sequence[_Line]) -> dict[str, list[str]]:
    """Gather the metrics without a test by the reason why."""
    found: dict[str, list[str]] = {}
    for line in lines:
        if line.adjusted is None:
            found.setdefault(f"no test, {line.test.reason}", []).append(line.name)
    return found


def show_examples(
    console: Console, model: Model, data: Dataset, outcome: Outcome, count: int = 3
) -> None:
    """Print heat maps of a few examples, spread over the data."""
    console.print(
        f"\n{outcome.selected.label} on {min(count, len(outcome.rows))} of the examples "
        "(orange for the prediction, blue against):",
        highlight=False,
    )
    labels = data.task.labels
    places = np.linspace(0, len(outcome.rows) - 1, min(count, len(outcome.rows))).round()
    for place in places.astype(int):
        row, example = outcome.rows[place], data.examples[place]
        long = outcome.record.protocol.long
        encoding = encode(model, example, data.task.evidence, long)
        right = "right" if row.right else f"wrong, it is {_truth(labels, example)}"
        said = f"{row.id}: {say(labels, encoding, row.target)}"
        console.print(Text(f"{said} (p = {row.probability:.3f}, {right})", style="dim"))
        console.print(heat_map(encoding, np.array(row.scores)))


def _truth(labels: Sequence[str], example: Example) -> str:
    return repr(example.answers[0].text) if example.answers else labels[example.label]


def run_command(request: Request) -> None:
    """Run explainers on a task and print the table, three heat maps and the record paths."""
    console = Console()
    with console.status("loading data and model"):
        job = make_job(request)
        from faithbench.run.loop import run
    with progress_on(console) as progress:
        outcomes = run(job, progress)
    for table in results_tables([(o.selected.label, o.record) for o in outcomes]):
        console.print(table)
    console.print(caption(outcomes[0].record), style="dim", highlight=False)

    for line in comparison_lines(outcomes):
        console.print(line, highlight=False, markup=False)
    show_examples(console, job.model, job.data, outcomes[0])
    for outcome in outcomes:
        console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)

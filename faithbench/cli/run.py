"""`faithbench run`: tables, paired tests and a few explained examples of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.options import (
    DataFolder,
    Device,
    Explainers,
    Jobs,
    Limit,
    ModelName,
    PluginFiles,
    Results,
    Source,
    Split,
    TaskName,
)

if TYPE_CHECKING:
    from faithbench.core.types import Example
    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model
    from faithbench.run.finish import Outcome
    from faithbench.stats.signed_rank import PairedTest


def run(
    explainer: Explainers,
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    split: Split = "test",
    limit: Limit = None,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Metrics or families, separated by commas; -name leaves one out."
        ),
    ] = "all",
    operator: Annotated[
        str, typer.Option(metavar="OPERATOR", help="How to erase: mask, delete or pad.")
    ] = "mask",
    device: Device = "auto",
    dtype: Annotated[
        str,
        typer.Option(
            metavar="DTYPE", help="Precision of the model: float32, float64, bf16 or fp16."
        ),
    ] = "float32",
    seed: Annotated[int, typer.Option(metavar="N", help="First seed of random explainers.")] = 0,
    seeds: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of seeds of random explainers.")
    ] = 3,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL", help="Sentence encoder for neighbours: a folder, or a hub name."
        ),
    ] = None,
    no_human: Annotated[
        bool,
        typer.Option("--no-human", help="Do not score human rationales next to the explainers."),
    ] = False,
    batch: Annotated[
        int, typer.Option(min=1, metavar="N", help="Explain at most N examples at a time.")
    ] = 16,
    long: Annotated[
        str,
        typer.Option(
            metavar="WAY", help="How to read texts that are too long: truncate or window."
        ),
    ] = "truncate",
    jobs: Jobs = None,
    results: Results = Path("results"),
    allow_changed_data: Annotated[
        bool,
        typer.Option("--allow-changed-data", help="Accept data whose checksum has changed."),
    ] = False,
    plugin: PluginFiles = None,
) -> None:
    """Explain and score a task's examples, and write a record.

    A run that was stopped continues where it was. An explainer that cannot serve the model is
    left out, and named at the end.
    """
    from faithbench.cli.display import progress_on

    console = Console()
    with progress_on(console, f"reading the data of {task}") as progress:
        from faithbench.api import evaluate  # here, where a line is on the screen already

        evaluation = evaluate(
            task,
            explainer,
            model=model,
            data=data,
            source=source,
            split=split,
            limit=limit,
            metrics=metrics,
            operator=operator,
            device=device,
            dtype=dtype,
            seed=seed,
            seeds=seeds,
            encoder=encoder,
            human=not no_human,
            batch=batch,
            long=long,
            jobs=jobs,
            results=results,
            allow_changed_data=allow_changed_data,
            plugins=tuple(plugin or ()),
            progress=progress,
        )
    outcomes = evaluation.outcomes
    console.print(evaluation)
    for line in comparison_lines(outcomes):
        console.print(line, highlight=False, markup=False)
    show_examples(console, evaluation.model, evaluation.data, outcomes[0])
    for outcome in outcomes:
        console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
    for line in left_out_lines(evaluation.left_out):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def left_out_lines(left_out: Mapping[str, str]) -> Iterator[str]:
    """Name the explainers that could not serve the model, a line each."""
    for label, reason in left_out.items():
        yield f"left out: {label} ({reason})"


@dataclass(frozen=True)
class _TestedMetric:
    """One metric of the first explainer against another one: the test, and p after Holm."""

    name: str
    other: str
    test: PairedTest
    adjusted: float | None
    better: bool | None


def comparison_lines(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Compare the first explainer with each other one, per metric, paired by example."""
    from faithbench.stats.pairwise import ALPHA

    if len(outcomes) < 2:
        return
    tested = _test_all(outcomes)
    count = sum(metric.adjusted is not None for metric in tested)
    mcnemar = any(metric.test.name == "McNemar" for metric in tested if metric.adjusted is not None)
    yield (
        f"\n{outcomes[0].selected.label} against the others (Wilcoxon signed-rank"
        f"{', for 0/1 metrics exact McNemar' if mcnemar else ''}; "
        f"p after Holm over {count} tests):"
    )
    for outcome in outcomes[1:]:
        metrics = [metric for metric in tested if metric.other == outcome.selected.label]
        clear = [m for m in metrics if m.adjusted is not None and m.adjusted < ALPHA]
        verdicts = {
            "better": [_numbers(metric) for metric in clear if metric.better],
            "worse": [_numbers(metric) for metric in clear if metric.better is False],
            "no clear difference": [
                metric.name
                for metric in metrics
                if metric.adjusted is not None and metric not in clear
            ],
            **_untested(metrics),
        }
        yield f"  {outcome.selected.label}"
        for verdict, names in verdicts.items():
            if names:
                text = f"{verdict}: {', '.join(names)}"
                yield textwrap.fill(text, 78, initial_indent="    ", subsequent_indent="      ")


def _test_all(outcomes: Sequence[Outcome]) -> list[_TestedMetric]:
    """Test every metric that has a direction, against every other explainer."""
    from faithbench.stats.pairwise import holm, paired_tests

    first, others = outcomes[0], outcomes[1:]
    facts = {
        n: f for n, f in first.record.metrics.items() if f.higher_is_better is not None and f.n
    }
    pairs = [(name, other) for name in facts for other in others]
    columns = {n: [[row.values[n] for row in o.rows] for o in outcomes] for n in facts}
    against = [(0, index) for index in range(1, len(outcomes))]
    tests = [test for n in facts for test in paired_tests(columns[n], against)]
    adjusted = iter(holm([t.p for t in tests if t.p is not None]))
    return [
        _TestedMetric(
            name=name,
            other=other.selected.label,
            test=test,
            adjusted=None if test.p is None else next(adjusted),
            better=None if test.effect == 0 else (test.effect > 0) == facts[name].higher_is_better,
        )
        for (name, other), test in zip(pairs, tests, strict=True)
    ]


def _numbers(metric: _TestedMetric) -> str:
    # Turned so that + is better, whatever the metric's direction.
    effect = abs(metric.test.effect) if metric.better else -abs(metric.test.effect)
    return f"{metric.name} (p = {metric.adjusted:.2g}, effect {effect:+.2f})"


def _untested(metrics: Sequence[_TestedMetric]) -> dict[str, list[str]]:
    """Group the metrics without a test by the reason why."""
    names: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.adjusted is None:
            names.setdefault(f"no test, {metric.test.reason}", []).append(metric.name)
    return names


def show_examples(
    console: Console, model: Model, data: Dataset, outcome: Outcome, count: int = 3
) -> None:
    """Print heat maps of a few examples, spread over the data."""
    import numpy as np

    from faithbench.models.encoding import encode
    from faithbench.run.heat_map import heat_map

    count = min(count, len(outcome.rows))
    console.print(
        f"\n{outcome.selected.label} on {count} of the examples "
        "(orange for the prediction, blue against):",
        highlight=False,
    )
    labels, long = data.task.labels, outcome.record.protocol.long
    for index in np.linspace(0, len(outcome.rows) - 1, count).round().astype(int):
        row, example = outcome.rows[index], data.examples[index]
        encoding = encode(model, example, data.task.evidence, long)
        verdict = "right" if row.right else f"wrong, it is {_truth(labels, example)}"
        prediction = f"{row.id}: {model.kind.describe(labels, encoding, row.target)}"
        console.print(Text(f"{prediction} (p = {row.probability:.3f}, {verdict})", style="dim"))
        console.print(heat_map(encoding, np.array(row.scores)))


def _truth(labels: Sequence[str], example: Example) -> str:
    return repr(example.answers[0].text) if example.answers else labels[example.label]

"""`faithbench run` and `merge`: tables, paired tests and a few explained examples of a run."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import ADVANCED, DATA, METRICS, MODEL, OUTPUT, WHAT, read_settings
from faithbench.cli.help.completion import complete_explainers, complete_metrics
from faithbench.cli.options import (
    Backend,
    DataFolder,
    Device,
    DryRun,
    HtmlFile,
    Jobs,
    Limit,
    ModelName,
    PluginFiles,
    Results,
    Source,
    Split,
    TaskName,
)
from faithbench.core.errors import FaithbenchError, Interrupted, Written
from faithbench.core.files import check_writable

if TYPE_CHECKING:
    from faithbench.core.types import Example
    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model
    from faithbench.run.evaluation import Evaluation
    from faithbench.run.finish import Outcome
    from faithbench.stats.signed_rank import PairedTest


def run(
    explainer: Annotated[
        str,
        typer.Option(
            "--explainer",
            "-e",
            metavar="NAMES",
            help="Explainers as name[:key=value,...], separated by commas; the others are tested "
            "against the first.",
            autocompletion=complete_explainers,
            rich_help_panel=WHAT,
        ),
    ],
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    split: Split = "test",
    limit: Limit = None,
    metrics: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Metrics or families, separated by commas; -name leaves one out.",
            autocompletion=complete_metrics,
            rich_help_panel=METRICS,
        ),
    ] = "all",
    operator: Annotated[
        str,
        typer.Option(
            metavar="OPERATOR",
            help="How to erase: mask, delete or pad.",
            rich_help_panel=METRICS,
        ),
    ] = "mask",
    device: Device = "auto",
    dtype: Annotated[
        str,
        typer.Option(
            metavar="DTYPE",
            help="Precision of the model: float32, float64, bf16 or fp16.",
            rich_help_panel=MODEL,
        ),
    ] = "float32",
    compiled: Annotated[
        bool,
        typer.Option(
            "--compiled",
            help="Let torch.compile compile the engine's pass: for GPUs, takes minutes once.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="First seed of random explainers.",
            rich_help_panel=METRICS,
        ),
    ] = 0,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Number of seeds of random explainers.",
            rich_help_panel=METRICS,
        ),
    ] = 3,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Sentence encoder for neighbours: a folder, or a hub name.",
            rich_help_panel=METRICS,
        ),
    ] = None,
    no_human: Annotated[
        bool,
        typer.Option(
            "--no-human",
            help="Do not score human rationales next to the explainers.",
            rich_help_panel=METRICS,
        ),
    ] = False,
    batch: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Explain at most N examples at a time.",
            rich_help_panel=ADVANCED,
        ),
    ] = 16,
    long: Annotated[
        str,
        typer.Option(
            metavar="WAY",
            help="How to read texts that are too long: truncate or window.",
            rich_help_panel=DATA,
        ),
    ] = "truncate",
    jobs: Jobs = None,
    backend: Backend = "processes",
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Compute the I-th of N parts, for `faithbench merge` (default: that of a Slurm "
            "array's task, else all).",
            rich_help_panel=ADVANCED,
        ),
    ] = None,
    dry_run: DryRun = False,
    results: Results = Path("results"),
    html: HtmlFile = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a line per explainer and metric as a CSV file.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    allow_changed_data: Annotated[
        bool,
        typer.Option(
            "--allow-changed-data",
            help="Accept data whose checksum has changed.",
            rich_help_panel=DATA,
        ),
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Start over: discard what a stopped run had finished.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    plugin: PluginFiles = None,
    config: Annotated[  # read by its callback, before the other options
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            is_eager=True,
            callback=read_settings,
            help="Settings as TOML, named as these options; what is typed has the last word.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    save_config: Annotated[  # written by the command before it runs
        Path | None,
        typer.Option(
            "--save-config",
            metavar="FILE",
            help="Write the settings of this run for --config.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Explain and score a task's examples, and write a record.

    A run that was stopped continues where it was. An explainer that cannot serve the model is
    left out, and named at the end.
    """
    from faithbench.cli.display import progress_on

    console = Console()
    for option, path in (("--html", html), ("--csv", csv)):
        if path is not None:  # said now, not after hours
            _check_file(path, option)
    with progress_on(console, f"reading the data of {task}") as progress:
        # Here, where a line is on the screen already.
        from faithbench.api import evaluate_request, evaluate_shard
        from faithbench.run.request import Request
        from faithbench.run.shard import parse_shard, shard_of_array

        request = Request(
            explainer=explainer,
            task=task,
            model=model,
            data=data,
            source=source,
            split=split,
            limit=limit,
            metrics=metrics,
            operator=operator,
            device=device,
            dtype=dtype,
            compiled=compiled,
            seed=seed,
            seeds=seeds,
            encoder=encoder,
            human=not no_human,
            batch=batch,
            long=long,
            results=results,
            allow_changed_data=allow_changed_data,
            plugins=tuple(plugin or ()),
        )
        if dry_run:
            from faithbench.api import forecast_request

            told = forecast_request(request, jobs=jobs, backend=backend, progress=progress)
            console.print(str(told), highlight=False, markup=False, soft_wrap=True)
            return
        part = shard_of_array(os.environ) if shard is None else parse_shard(shard)
        if part is not None and part.count > 1:
            folder, count = evaluate_shard(
                request, part, jobs=jobs, backend=backend, fresh=fresh, progress=progress
            )
            console.print(
                f"shard {part.index} of {part.count}: {count} examples in {folder}; when all are "
                f"done: faithbench merge {results}/shard-*-of-{part.count} --results {results}",
                highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip
            return
        evaluation = evaluate_request(
            request, jobs=jobs, backend=backend, fresh=fresh, progress=progress
        )
    records = [outcome.path for outcome in evaluation.outcomes]
    try:
        show_evaluation(console, evaluation)
        for line in _write_reports(records, html, csv):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    except KeyboardInterrupt as stop:
        count = len(records)
        raise Interrupted(Written(count, count, f"records in {records[0].parent}")) from stop


def merge(
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER", help="Folders of all shards of one run.")
    ],
    data: DataFolder = None,
    jobs: Jobs = None,
    results: Results = Path("results"),
) -> None:
    """Make the records of a run from its shards.

    Shards come from `faithbench run --shard I/N`. The records are those of one run, byte by byte
    but for times; speed is measured here.
    """
    from faithbench.cli.display import progress_on

    console = Console()
    with progress_on(console, "reading the shards") as progress:
        from faithbench.api import merge as merge_shards

        evaluation = merge_shards(folders, results, data=data, jobs=jobs, progress=progress)
    show_evaluation(console, evaluation)


def show_evaluation(console: Console, evaluation: Evaluation) -> None:
    """Print the results of a run: table, paired tests, a few examples, and the records' paths."""
    outcomes = evaluation.outcomes
    console.print(evaluation)
    for line in comparison_lines(outcomes):
        console.print(line, highlight=False, markup=False)
    show_examples(console, evaluation.model, evaluation.data, outcomes[0])
    for outcome in outcomes:
        console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
    for line in left_out_lines(evaluation.left_out):
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _write_reports(records: Sequence[Path], html: Path | None, csv: Path | None) -> Iterator[str]:
    """Write what was asked for besides the records, and name each file."""
    if html is None and csv is None:
        return
    from faithbench.leaderboard.html.report import board_of_files, write_report
    from faithbench.leaderboard.pages.export import write_export

    board = board_of_files(records)
    if html is not None:
        write_report(board, html, f"faithbench run: {board.tables[0].title}")
        yield f"page: {html}"
    if csv is not None:
        write_export(board, csv, "csv")
        yield f"table: {csv}"


def _check_file(path: Path, option: str) -> None:
    """Refuse a file that cannot be written."""
    if path.is_dir():
        raise FaithbenchError(f"{option} {path} is a folder; give the name of a file")
    check_writable(path.parent, option)


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

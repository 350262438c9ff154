"""`faithbench fresh`: classifiers trained on rationales alone, against whole texts and chance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.help.command import DATA, MODEL, OUTPUT, TRAINING, WHAT
from faithbench.cli.options import (
    DataFolder,
    Device,
    Explainers,
    Jobs,
    PluginFiles,
    Source,
    TaskName,
)

if TYPE_CHECKING:
    from faithbench.training.fresh.study import ArmScore, FreshReport, FreshRequest

LEGEND = (
    "Words: mean number per test text. p over seeds: two-sample t-test of macro-F1, as in the "
    "papers. p over examples: test texts paired, right or wrong (McNemar for one seed, signed "
    "ranks of the share of right seeds for several). Neither is corrected for several tests."
)


def fresh(
    explainer: Explainers,
    task: TaskName,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL",
            help="Support model to explain; repeat to compare several (default: the task's own).",
            rich_help_panel=MODEL,
        ),
    ] = None,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Share of the words to keep (default: the task's own).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    select: Annotated[
        str,
        typer.Option(
            metavar="WAY", help="Which words to keep: topk or contiguous.", rich_help_panel=WHAT
        ),
    ] = "topk",
    form: Annotated[
        str,
        typer.Option(
            metavar="FORM",
            help="Details as in the paper, or as in the released code.",
            rich_help_panel=WHAT,
        ),
    ] = "paper",
    seeds: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Classifiers per kind of rationale.", rich_help_panel=TRAINING
        ),
    ] = 3,
    controls: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Trained beside them: full, random, or both.",
            rich_help_panel=TRAINING,
        ),
    ] = "full,random",
    epochs: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Epochs of each training.", rich_help_panel=TRAINING),
    ] = 2,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Encoder of the classifiers: a folder, or a name on the hub.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    data: DataFolder = None,
    source: Source = "auto",
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use at most N training rows.", rich_help_panel=DATA),
    ] = None,
    dev_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Use at most N validation rows.", rich_help_panel=DATA
        ),
    ] = None,
    test_limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use at most N test rows.", rich_help_panel=DATA),
    ] = None,
    device: Device = "auto",
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of scores and classifiers (default: fresh/<task>).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the records (default: records in --out).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    plugin: PluginFiles = None,
) -> None:
    """Train classifiers on rationales alone.

    FRESH: explains train, dev and test with a support model, keeps the best words of each text,
    trains fresh classifiers on them, and reports macro-F1 next to whole texts and random words. A
    stopped command continues.
    """
    from faithbench.cli.display import progress_on
    from faithbench.data.tasks import load_task

    console = Console()
    the_task = load_task(task)
    with progress_on(console, "loading data and model") as progress:
        from faithbench.training.fresh.extraction import Extraction
        from faithbench.training.fresh.study import FreshRequest
        from faithbench.training.fresh.study import fresh as study
        from faithbench.training.recipe import Recipe

        out = out or Path("fresh") / the_task.name
        request = FreshRequest(
            task=the_task,
            explainer=explainer,
            how=Extraction(
                the_task.rationale_ratio if ratio is None else ratio,
                select,  # type: ignore[arg-type]  # checked there
                form,  # type: ignore[arg-type]  # likewise
            ),
            out=out,
            records=records or out / "records",
            models=tuple(model or (None,)),
            recipe=Recipe(metric="macro_f1", epochs=epochs, patience=epochs),
            seeds=seeds,
            controls=tuple(part.strip() for part in controls.split(",") if part.strip()),
            base=base,
            folder=data,
            source=source,
            limits=(limit, dev_limit, test_limit),
            device=device,
            jobs=jobs,
            plugins=tuple(plugin or ()),
        )
        report = study(request, progress)
    for block in _blocks(request, report):
        console.print(block, highlight=False)
    for arm in report.arms:
        if arm.record is not None:
            console.print(f"record: {arm.record}", highlight=False, soft_wrap=True)


def _blocks(request: FreshRequest, report: FreshReport) -> Iterator[Text | Table]:
    """Yield what is printed: a title, the scores, the tests, and what they mean."""
    how, (train, dev, test) = request.how, report.sizes
    released = ", released form" if how.form == "released" else ""
    seeds = f"{request.seeds} seed{'s' * (request.seeds > 1)}"
    yield Text(
        f"FRESH on {request.task.name}: {how.selection}, {how.ratio:.0%} of the words{released}"
    )
    yield Text(f"{train} train, {dev} dev and {test} test texts, {seeds}", style="dim")
    yield _scores(report)
    if report.tests:
        yield _tests(report, request.seeds)
        yield Text(LEGEND, style="dim")


def _scores(report: FreshReport) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("input", overflow="fold", max_width=26)
    table.add_column("support model", overflow="fold", max_width=22)
    for title in ("words", "macro-F1", "sd", "lowest", "highest"):
        table.add_column(title, justify="right", no_wrap=True)
    for arm in report.arms:
        deviation = "-" if arm.deviation is None else f"{arm.deviation:.3f}"
        ends = (f"{min(arm.macro_f1):.3f}", f"{max(arm.macro_f1):.3f}")
        numbers = (f"{arm.words:.1f}", f"{arm.mean:.3f}", deviation, *ends)
        table.add_row(Text(arm.label), Text(arm.support or "-"), *numbers)
    return table


def _tests(report: FreshReport, seeds: int) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for title in ("first", "second"):
        table.add_column(title, overflow="fold", max_width=22)
    for title in ("difference", f"p, {seeds}+{seeds} seeds", f"p, {report.sizes[2]} texts"):
        table.add_column(title, justify="right", no_wrap=True)
    for test in report.tests:
        first, second = report.arms[test.first], report.arms[test.second]
        same = first.label == second.label
        table.add_row(
            *(Text(_name(arm, same)) for arm in (first, second)),
            f"{first.mean - second.mean:+.3f}",
            _p(test.over_seeds),
            _p(test.over_examples.p),
        )
    return table


def _name(arm: ArmScore, by_support: bool) -> str:
    """Name an arm by what the pair differs in."""
    return f"{arm.label}, {arm.support}" if by_support else arm.label


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}"

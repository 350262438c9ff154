"""The commands that prepare models: `train` and `heads`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from faithbench.cli.help.command import ADVANCED, DATA, MODEL, OUTPUT, TRAINING
from faithbench.cli.options import DataFolder, Device, ModelName, Source, TaskName
from faithbench.core.errors import FaithbenchError

if TYPE_CHECKING:
    from faithbench.explainers.passes.heads import Calibration, HeadStatistics, Trial


def train(
    task: TaskName,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New folder for the model (default: models/<task>).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Encoder to start from: a folder, or a name on the hub.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    arch: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Train a network from scratch instead of an encoder: cnn, bilstm or transformer.",
            rich_help_panel=MODEL,
        ),
    ] = "",
    projection: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Attention of --arch bilstm or transformer: softmax (default), sparsemax, "
            "entmax15 or sparsegen:X with X below 1.",
            rich_help_panel=MODEL,
        ),
    ] = "",
    vectors: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Word vectors that --arch starts from: minilm, glove, spacy or random.",
            rich_help_panel=MODEL,
        ),
    ] = "minilm",
    width: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            show_default=False,  # 0 stands for what the help tells
            help="Width of these vectors and of a cnn (default: 100, or all of narrower vectors).",
            rich_help_panel=MODEL,
        ),
    ] = 0,
    lora: Annotated[
        bool,
        typer.Option(
            "--lora/--full", help="Train a small adapter, or all weights.", rich_help_panel=MODEL
        ),
    ] = True,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the training.", rich_help_panel=TRAINING)
    ] = 0,
    data: DataFolder = None,
    source: Source = "auto",
    device: Device = "auto",
    epochs: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Train for at most N epochs.", rich_help_panel=TRAINING
        ),
    ] = 4,
    patience: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Stop after N epochs without a better validation score.",
            rich_help_panel=TRAINING,
        ),
    ] = 2,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="Highest learning rate (default: 1e-3; 5e-5 with --full).",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(metavar="N", min=1, help="Rows per step.", rich_help_panel=TRAINING)
    ] = 32,
    rank: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Rank of the LoRA adapter.", rich_help_panel=MODEL),
    ] = 16,
    dropout: Annotated[
        float,
        typer.Option(
            metavar="X", min=0, max=1, help="Dropout of the adapter.", rich_help_panel=MODEL
        ),
    ] = 0.1,
    encoder_dropout: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            min=0,
            max=1,
            help="Dropout of the network (default: 0.1; 0.5 of a cnn, 0.3 of other --arch); "
            "0 is faster.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=8,
            help="Cut training and validation texts at N tokens.",
            rich_help_panel=DATA,
        ),
    ] = None,
    excerpts: Annotated[
        str,
        typer.Option(
            metavar="N,...",
            help="Also train on rationale excerpts with N sentences of context (e.g. 0,2).",
            rich_help_panel=DATA,
        ),
    ] = "",
    excerpts_alone: Annotated[
        bool,
        typer.Option(
            "--excerpts-alone",
            help="Train on excerpts only, not on documents.",
            rich_help_panel=DATA,
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use at most N training rows.", rich_help_panel=DATA),
    ] = None,
    dev_limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Use at most N validation rows for model selection.",
            rich_help_panel=DATA,
        ),
    ] = None,
    test_limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Use at most N test rows.", rich_help_panel=DATA),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Validation metric for early stopping (default: the task's usual one), or "
            "metric@explainer, such as flip_fraction@attention.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:key=value]",
            help="Loss to minimise, or to add to cross-entropy; repeat to add several.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=V,V,...",
            help="Train once per value of an objective's setting (e.g. weight=0.01,0.1,1) and "
            "choose on validation rows.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    grid_metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Metric that chooses from the grid (default: --metric).",
            rich_help_panel=TRAINING,
        ),
    ] = None,
) -> None:
    """Train a model for a task.

    An encoder is fine-tuned, or with --arch a small network is trained from scratch. A training
    that was stopped continues at its last checkpoint.
    """
    from faithbench.cli.display import progress_on
    from faithbench.core.files import check_writable
    from faithbench.data.tasks import load_task

    console = Console()
    the_task = load_task(task)
    contexts = _numbers(excerpts)
    out = out or Path("models") / the_task.name
    check_writable(out, "--out")
    with progress_on(console, "loading data and model") as progress:
        from faithbench.training.dev_metric import find_dev_metric
        from faithbench.training.fit import fit
        from faithbench.training.from_scratch import check_arch
        from faithbench.training.objectives import find_objectives
        from faithbench.training.recipe import Recipe, load_splits, usual_metric

        recipe = Recipe(
            seed=seed,
            method="lora" if lora and not arch else "full",
            objectives=tuple(objective or ()),
            metric=metric or usual_metric(the_task),
            epochs=epochs,
            patience=patience,
            learning_rate=learning_rate or (1e-3 if lora or arch else 5e-5),
            batch_size=batch_size,
            max_tokens=max_tokens,
            rank=rank,
            alpha=2 * rank,
            dropout=dropout,
            encoder_dropout=_dropout(encoder_dropout, arch),
            arch=arch,
            vectors=vectors,
            width=width,
            projection=projection,
            excerpts=contexts,
            excerpts_alone=excerpts_alone,
        )
        limits = (limit, dev_limit, test_limit)
        asked = None
        if grid is not None:
            from faithbench.training.grid import fit_grid, read_grid

            asked = read_grid(grid, recipe.objectives)
        elif grid_metric is not None:
            raise FaithbenchError("--grid-metric chooses from a grid; give --grid as well")
        check_arch(recipe)  # a bad name is refused before data are read
        find_objectives(recipe.objectives)
        find_dev_metric(recipe.metric, the_task.kind)
        splits = load_splits(the_task, source=source, folder=data, limits=limits)
        if asked is not None:
            report = fit_grid(
                splits, recipe, asked, out, progress, metric=grid_metric, base=base, device=device
            )
        else:
            card = fit(splits, recipe, out, progress, base=base, device=device)
    if asked is not None:
        console.print(_grid_of_values(report))
        said = f"chosen: {report['setting']}={report['chosen']}; use it with --model {out}"
        console.print(f"{said}/{report['folder']}", highlight=False, soft_wrap=True)
        return
    scores = ", ".join(f"{name} {value:.4f}" for name, value in card["test"].items())
    chosen = find_dev_metric(recipe.metric, the_task.kind).best(card["dev_by_epoch"])
    best = f"{recipe.metric} {chosen:.4f}"
    console.print(
        f"test: {scores}; dev: {best}; use it with --model {out}", highlight=False, soft_wrap=True
    )


def _grid_of_values(report: Mapping[str, Any]) -> Table:
    """Lay out one line per value that was tried, with the dev score that chooses and test."""
    table = Table()
    names = list(report["tried"][0]["test"])
    table.add_column(report["setting"], justify="right")
    table.add_column(f"dev {report['metric']}", justify="right")
    for name in names:
        table.add_column(f"test {name}", justify="right")
    for trial in report["tried"]:
        style = "bold" if trial["value"] == report["chosen"] else None
        scores = (f"{trial['test'][name]:.4f}" for name in names)
        table.add_row(trial["value"], f"{trial['dev']:.4f}", *scores, style=style)
    return table


def _dropout(asked: float | None, arch: str) -> float:
    """Return the network's dropout: that of encoders, or that of the papers' own networks."""
    if asked is not None:
        return asked
    return {"": 0.1, "cnn": 0.5}.get(arch, 0.3)


def _numbers(text: str) -> tuple[int, ...]:
    """Read whole numbers separated by commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise FaithbenchError(
            f"--excerpts {text!r} should be numbers of sentences with commas, such as 0,2"
        )
    return tuple(int(part) for part in parts)


def heads(
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    sentences: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Parse at most N training sentences.", rich_help_panel=DATA
        ),
    ] = 1000,
    examples: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Calibrate on at most N validation examples.",
            rich_help_panel=DATA,
        ),
    ] = 200,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", min=8, help="Cut texts at N tokens.", rich_help_panel=DATA),
    ] = None,
    coarse: Annotated[
        bool,
        typer.Option(
            "--coarse",
            help="Try only every second threshold, for long texts.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    keep_statistics: Annotated[
        bool,
        typer.Option(
            "--keep-statistics",
            help="Only calibrate the heads of the present file; no parser.",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    device: Device = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File to write (default: where lrp-mask looks for it).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Find the attention heads that lrp-mask follows.

    Measures which heads are syntactic or positional on training sentences, and calibrates the
    thresholds that select them on validation examples: the strictest mask that is not worse
    than none, if there is one.
    """
    from faithbench.cli.display import progress_on
    from faithbench.data.tasks import load_task

    console = Console()
    the_task = load_task(task)
    with progress_on(console, "loading data and model") as progress:
        from faithbench.training.head_calibration import fit_heads

        statistics, path = fit_heads(
            the_task,
            model=model,
            folder=data,
            source=source,
            sentences=sentences,
            examples=examples,
            max_tokens=max_tokens,
            coarse=coarse,
            keep_statistics=keep_statistics,
            device=device,
            out=out,
            progress=progress,
        )
    if statistics.calibration is not None:
        console.print(_grid_table(statistics, statistics.calibration.grid))
        said = _finding(statistics, statistics.calibration)
        console.print(said, highlight=False, soft_wrap=True)
    console.print(f"written: {path}", highlight=False, soft_wrap=True)


def _grid_table(statistics: HeadStatistics, grid: Sequence[Trial]) -> Table:
    """Lay out one line per mask that was tried, no mask first, then from loose to strict.

    Of the thresholds that lead to the same mask, the highest are shown.
    """
    from faithbench.explainers.passes.heads import masks_at

    table = Table()
    names = ("xi synt.", "xi pos.", "heads", "dev AOPC", "change", "s.e.", "p worse", "p better")
    for name in names:
        table.add_column(name, justify="right")
    (no_mask,) = (trial for trial in grid if trial.thresholds is None)
    table.add_row("no mask", "", str(no_mask.heads), f"{no_mask.aopc:.4f}")
    # The grid is sorted, so that of equal masks the one with the highest thresholds stays.
    pairs = ((trial.thresholds, trial) for trial in grid)
    masks = {str(masks_at(statistics, *pair)): trial for pair, trial in pairs if pair is not None}
    for trial in sorted(masks.values(), key=lambda trial: -trial.heads):
        table.add_row(
            f"{trial.xi_syntactic:g}",
            f"{trial.xi_positional:g}",
            str(trial.heads),
            f"{trial.aopc:.4f}",
            f"{trial.aopc - no_mask.aopc:+.4f}",
            _number(trial.error, 4),
            _number(trial.p_worse, 3),
            _number(trial.p_better, 3),
        )
    return table


def _number(value: float | None, places: int) -> str:
    return "-" if value is None else f"{value:.{places}f}"


def _finding(statistics: HeadStatistics, calibration: Calibration) -> str:
    """Return one sentence: whether masking helps, and what lrp-mask does by default."""
    pair = statistics.thresholds["calibrated"]
    (chosen,) = (trial for trial in calibration.grid if trial.thresholds == pair)
    start = f"{calibration.verdict} ({calibration.examples} texts): lrp-mask "
    if pair is None:
        return f"{start}takes all {chosen.heads} heads, because no mask of the grid is as good"
    better = "; it is better" if calibration.verdict == "masking helps" else ""
    return (
        f"{start}takes {chosen.heads} heads (xi {pair[0]:g} and {pair[1]:g}), the strictest mask "
        f"that is not worse than none{better}"
    )

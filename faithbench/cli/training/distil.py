"""`faithbench distil`: a small network that explains as a slow explainer does."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from faithbench.cli.help.command import DATA, OUTPUT, TRAINING, WHAT
from faithbench.cli.options import (
    DataFolder,
    Device,
    Jobs,
    ModelName,
    PluginFiles,
    Source,
    TaskName,
)

if TYPE_CHECKING:
    from faithbench.training.distil.distil import Distilled


def distil(
    task: TaskName,
    teacher: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Explainer to learn from, as name[:key=value,...], or a record of its scores; "
            "several, separated by commas, become one student.",
            rich_help_panel=WHAT,
        ),
    ] = "deep-shap",
    form: Annotated[
        str,
        typer.Option(
            metavar="FORM",
            help="labelling: five labels; ranking: the order of tokens.",
            rich_help_panel=WHAT,
        ),
    ] = "labelling",
    target: Annotated[
        str | None,
        typer.Option(
            metavar="WAY",
            help="Rank by signed weights, or absolute ones as the paper does.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    released: Annotated[
        bool,
        typer.Option(
            "--released",
            help="Use the losses of the paper's released code.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    recipe: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to train: default, or paper (plain SGD, slow).",
            rich_help_panel=TRAINING,
        ),
    ] = "default",
    seeds: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Initialisations to train.", rich_help_panel=TRAINING
        ),
    ] = 3,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Train for at most N epochs.", rich_help_panel=TRAINING
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(min=4, metavar="N", help="Width of a block.", rich_help_panel=TRAINING),
    ] = None,
    blocks: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Number of blocks.", rich_help_panel=TRAINING),
    ] = None,
    embeddings: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="The model's own, frozen, or random ones.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Learn from at most N texts.", rich_help_panel=DATA),
    ] = None,
    device: Device = "auto",
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Folder of the student (default: students/<task>/<teacher>-<form>).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    explanations: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="Where the teacher's scores are kept and found.",
            rich_help_panel=OUTPUT,
        ),
    ] = Path("students/explanations"),
    plugin: PluginFiles = None,
) -> None:
    """Distil an explainer into a small network.

    L2E: explains the training split once with the teacher, trains a student that predicts its
    scores from the text and the predicted class, and writes a folder that
    `--explainer l2e:student=FOLDER` reads. A stopped command continues.
    """
    from faithbench.cli.display import progress_on
    from faithbench.data.tasks import load_task

    console = Console()
    the_task = load_task(task)
    with progress_on(console, "loading data and model") as progress:
        from faithbench.training.distil.distil import DistilRequest
        from faithbench.training.distil.distil import distil as make
        from faithbench.training.distil.recipe import DistilRecipe, with_recipe

        usual = "absolute" if released and form == "ranking" else "signed"
        chosen = {
            "epochs": epochs,
            "width": width,
            "feedforward": None if width is None else 2 * width,
            "blocks": blocks,
            "embeddings": embeddings,
        }
        settings = {name: value for name, value in chosen.items() if value is not None}
        request = DistilRequest(
            task=the_task,
            teacher=teacher,
            recipe=with_recipe(
                DistilRecipe(
                    form=form,  # type: ignore[arg-type]  # checked there
                    target=target or usual,  # type: ignore[arg-type]  # likewise
                    released=released,
                ),
                recipe,
                **settings,
            ),
            seeds=seeds,
            model=model,
            folder=data,
            source=source,
            limit=limit,
            device=device,
            jobs=jobs,
            out=out,
            explanations=explanations,
            plugins=tuple(plugin or ()),
        )
        student = make(request, progress)
    _show(console, student)


def _show(console: Console, student: Distilled) -> None:
    """Print what was learned, what it cost, and how to ask the student."""
    card, costs = student.card, student.costs
    lessons = card.lessons
    console.print(
        f"A student of {card.teacher} ({card.form}) for {card.model} on {card.task}: "
        f"{lessons.n} texts, {lessons.held_out} held out",
        highlight=False,
    )
    console.print(_networks(student))
    seconds = sum(one["seconds"] or 0 for one in costs["teachers"])
    training = sum(one["cpu_seconds"] or 0 for one in costs["training"])
    asking = costs["explaining"]
    console.print(
        f"Made in {seconds:.0f} s of the teacher's and {training:.0f} CPU s of training. Asking it "
        f"costs {asking['forward_equivalents']:.3f} of the model's own forward pass, which finds "
        "out the class.",
        highlight=False,
    )
    console.print(
        f"Use it: faithbench run --task {card.task} --explainer l2e:student={student.folder}",
        highlight=False,
        soft_wrap=True,
    )


def _networks(student: Distilled) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for title in ("seed", "epochs", "kept", "loss untrained", "loss", "correlation", "CPU s"):
        table.add_column(title, justify="right", no_wrap=True)
    pairs = zip(student.card.initialisations, student.costs["training"], strict=True)
    for facts, cost in pairs:
        correlation = "-" if facts.correlation is None else f"{facts.correlation:.3f}"
        table.add_row(
            str(facts.seed), str(len(facts.train_losses)), str(facts.epoch),
            f"{facts.dev_losses[0]:.3f}", f"{facts.dev_losses[facts.epoch]:.3f}",
            correlation, "-" if cost["cpu_seconds"] is None else f"{cost['cpu_seconds']:.0f}",
        )  # fmt: skip
    return table

"""`faithbench compare-models`: the same explainers on a plain model and on others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from faithbench.cli.help.command import DATA, METRICS, WHAT
from faithbench.cli.options import Results, TaskName
from faithbench.core.errors import FaithbenchError, unknown

if TYPE_CHECKING:
    from faithbench.records.model_comparison import ModelPair, ModelRecords

LEGEND = (
    "p is of the paired test (Wilcoxon signed-rank, or exact McNemar for 0/1 values) after Holm "
    "over the explainers of a table; rank-sum ignores the pairs and is not corrected (SaLoss). "
    "Models differ in how easily they change their mind: read every line beside that of `random`."
)


def compare_models(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL", help="Two or more, as in records; seeds of one with commas."
        ),
    ],
    task: TaskName,
    results: Results = Path("results"),
    explainer: Annotated[
        str | None,
        typer.Option(
            "--explainer",
            "-e",
            metavar="NAMES",
            help="Only these (default: all).",
            rich_help_panel=WHAT,
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "--metrics",
            metavar="NAMES",
            help="Metrics, with commas.",
            rich_help_panel=METRICS,
        ),
    ] = "aopc,flip_fraction",
    right: Annotated[
        bool,
        typer.Option(
            "--right", help="Only examples that every model predicts right.", rich_help_panel=DATA
        ),
    ] = False,
    by_class: Annotated[
        bool,
        typer.Option(
            "--by-class", help="One table per class of the gold label.", rich_help_panel=DATA
        ),
    ] = False,
) -> None:
    """Test recorded explainers on one model against another.

    Every model after the first is compared with the first, on the same examples.
    """
    from faithbench.records.model_comparison import examples_of, find_models

    console = Console()
    if len(models) < 2:
        raise FaithbenchError("name two models or more to compare; several seeds with commas")
    sides = find_models(models, task, results)
    labels = _wanted(explainer, sides)
    names = [name.strip() for name in metric.split(",") if name.strip()]
    known = {name for side in sides for name in side.first.record.metrics}
    if absent := [name for name in names if name not in known]:
        raise unknown("metric in these records", absent[0], known)
    classes = sides[0].first.record.model.labels
    gold = sorted({row.label for row in sides[0].first.rows})
    groups: Sequence[int | None] = gold if by_class else (None,)
    for other in sides[1:]:
        console.print(Text(f"{sides[0].name} and {other.name}, {task}", style="bold"))
        for group in groups:
            ids = examples_of([sides[0], other], right=right, label=group)
            named = "" if group is None else f", class {classes[group]}"
            told = f"{len(ids)} examples{' that both get right' if right else ''}{named}"
            for name in names:
                for block in _report(sides[0], other, name, labels, ids, told):
                    console.print(block, highlight=False)
    console.print(Text(LEGEND, style="dim"))


def _wanted(explainer: str | None, sides: Sequence[ModelRecords]) -> list[str]:
    """Return the explainers to compare, all that are on every side unless some are named."""
    from faithbench.records.model_comparison import shared_explainers

    shared = shared_explainers(sides)
    if not shared:
        raise FaithbenchError("no explainer has records of all of these models; run one on each")
    named = [] if explainer is None else [name.strip() for name in explainer.split(",")]
    for name in named:
        if name not in shared:
            raise unknown("explainer of all these models", name, shared)
    return named or shared


def _report(
    first: ModelRecords,
    second: ModelRecords,
    metric: str,
    labels: Sequence[str],
    ids: Sequence[str],
    told: str,
) -> Iterator[RenderableType]:
    from faithbench.metrics.registry import title_of
    from faithbench.records.model_comparison import compare_models as compare

    pairs = compare(first, second, metric, labels, ids)
    yield Text()
    yield Text(f"{title_of(metric)}, {told}")
    if not pairs:
        yield Text("no explainer has a value on both models")
        return
    facts = first.first.record.metrics[metric]
    yield _table(pairs, facts.higher_is_better)


def _table(pairs: Sequence[ModelPair], higher_is_better: bool | None) -> Table:
    from faithbench.stats.pairwise import ALPHA

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", overflow="fold", max_width=26)
    better = {True: " (up)", False: " (down)", None: ""}[higher_is_better]
    for title in ("first", "second", f"change{better}", "p", "rank-sum", "n"):
        table.add_column(title, justify="right", no_wrap=True)
    for pair in pairs:
        after, unpaired = pair.adjusted, pair.rank_sum.p
        style = "bold" if after is not None and after < ALPHA else ""
        table.add_row(
            Text(pair.explainer, style=style),
            f"{pair.first:.3f}",
            f"{pair.second:.3f}",
            f"{pair.second - pair.first:+.3f}",
            Text("-" if after is None else f"{after:.2g}", style=style),
            "-" if unpaired is None else f"{unpaired:.2g}",
            str(pair.n),
        )
    return table

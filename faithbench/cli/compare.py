"""`faithbench compare`: means and ties, paired tests, and where explainers differ most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from faithbench.cli.options import Results, TaskName
from faithbench.core.text import without_controls

if TYPE_CHECKING:
    from faithbench.records.comparison import Comparison, Difference
    from faithbench.records.entrants import Entrant
    from faithbench.records.schema import MetricFacts
    from faithbench.stats.tournament import Duel, Tournament

WIDTH = 80
LEGEND = (
    "Explainers that share a letter are not significantly different (p >= .05 after Holm over the "
    "pairs of the table); the best mean and those not significantly worse are bold. "
    "Intervals are bootstrap, 95%. Effect is rank-biserial: +1 if the first is the "
    "higher on all examples."
)
_TEST_NAMES = {
    "signed-rank": "Wilcoxon signed-rank",
    "McNemar": "exact McNemar (0/1 values)",
    "paired t": "paired t (effect: mean / sd of the differences)",
}


def compare(
    explainers: Annotated[
        list[str],
        typer.Argument(
            metavar="EXPLAINER", help="Two or more, named as in `run`, or files of records."
        ),
    ],
    task: TaskName,
    results: Results = Path("results"),
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "--metrics",
            metavar="NAMES",
            help="Metrics or families, separated by commas.",
        ),
    ] = "all",
) -> None:
    """Test recorded explainers against each other.

    Also shows the examples on which they differ most in the first of the metrics.
    """
    from faithbench.data.tasks import load_task
    from faithbench.records.comparison import chosen_metrics, most_different
    from faithbench.records.comparison import compare as compare_values
    from faithbench.records.entrants import find_entrants

    console = Console()
    name = load_task(task).name if task.endswith(".toml") else task
    wanted = [part.strip() for part in metric.split(",")]
    entrants = find_entrants(explainers, name, results, [m for m in wanted if m != "all"])
    chosen = chosen_metrics(wanted, entrants)
    rows = entrants[0].records[0].rows
    ids = [row.id for row in rows]
    tables = {m: {e.label: e.values(m, ids) for e in entrants} for m in chosen}
    for line in _heading(entrants):
        console.print(line)
    for name, values in tables.items():
        for block in _report(compare_values(name, entrants[0].metrics[name], values)):
            console.print(block, highlight=False)
    console.print(Text(LEGEND, style="dim"))
    for line in _examples(chosen[0], most_different(tables[chosen[0]], rows)):
        console.print(line)


def _heading(entrants: Sequence[Entrant]) -> Iterator[Text]:
    from faithbench.records.comparison import metric_names

    shared = entrants[0].conditions
    yield Text.assemble(
        (f"{shared.task} ({shared.source}, {shared.split}, n = {shared.n})", "bold"),
        f"; model {shared.model}, {shared.dtype}; erased by {shared.operator}",
    )
    for entrant in entrants:
        if len(entrant.seeds) > 1:
            yield Text(f"{entrant.label}: mean over seeds {', '.join(map(str, entrant.seeds))}")
    left = [n for n in metric_names(entrants) if any(n not in e.metrics for e in entrants)]
    if left:
        yield Text(f"not in all records, and left out: {', '.join(left)}", style="dim")


def _report(comparison: Comparison) -> Iterator[RenderableType]:
    yield Text()
    yield _title(comparison.metric, comparison.facts)
    yield _means(comparison)
    duels = comparison.tournament.duels
    tested = [duel for duel in duels if duel.adjusted is not None]
    if tested:
        names = sorted({_TEST_NAMES[duel.test.name] for duel in tested}, reverse=True)
        yield Text(f"{' and '.join(names)}, Holm over {len(tested)}:", style="dim")
        yield _tests(comparison.tournament, tested)
    for duel in duels:
        if duel.adjusted is None:
            yield Text(f"no test of {duel.first} and {duel.second}: {duel.test.reason}")


def _title(metric: str, facts: MetricFacts) -> Text:
    from faithbench.metrics.registry import title_of

    better = {True: ", higher is better", False: ", lower is better", None: ""}
    name = title_of(metric)
    return Text(f"{name} ({facts.family}{better[facts.higher_is_better]})", style="bold")


def _means(comparison: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", overflow="fold", max_width=32)
    for title in ("mean", "interval", "ties", "n", "skipped"):
        table.add_column(title, justify="left" if title == "ties" else "right", overflow="fold")
    result = comparison.tournament
    for label in result.order:
        mean, interval, n, skipped = comparison.summaries[label]
        bold = "bold" if label == result.best or label in result.ties else ""
        table.add_row(
            Text(label, style=bold),
            Text("-" if mean is None else f"{mean:.3f}", style=bold),
            "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}",
            result.letters[label] or "-",
            str(n),
            str(skipped),
        )
    return table


def _tests(result: Tournament, duels: Sequence[Duel]) -> Table:
    """Lay out the tests; effects are + where the first is better."""
    from faithbench.stats.pairwise import ALPHA

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    for title in ("first", "second"):
        table.add_column(title, overflow="fold", max_width=22)
    for title in ("n", "p", "after Holm", "effect"):
        table.add_column(title, justify="right", no_wrap=True)
    for duel in duels:
        test, adjusted = duel.test, duel.adjusted
        if test.p is not None and adjusted is not None:
            after = Text(f"{adjusted:.2g}", style="bold" if adjusted < ALPHA else "")
            numbers = (str(test.n), f"{test.p:.2g}", after, f"{result.effect(duel):+.2f}")
            table.add_row(Text(duel.first), Text(duel.second), *numbers)
    return table


def _examples(metric: str, differences: Sequence[Difference]) -> Iterator[Text]:
    from faithbench.metrics.registry import title_of

    if not differences:
        return
    yield Text(
        f"\nThe {len(differences)} examples on which they differ most in "
        f"{title_of(metric)} (--metric names another):",
        style="bold",
    )
    for difference in differences:
        yield Text(difference.id)
        values = [f"{label} {value:.3f}" for label, value in difference.values.items()]
        yield Text("  " + ", ".join(values))
        line = Text(f"  {without_controls(' '.join(difference.tokens))}", style="dim")
        line.truncate(WIDTH, overflow="ellipsis")
        yield line

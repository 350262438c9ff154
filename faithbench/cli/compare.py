"""What `faithbench compare` says: means and ties, paired tests, where explainers differ most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from faithbench.core.text import without_controls
from faithbench.data.tasks import load_task
from faithbench.metrics.registry import TITLES
from faithbench.records.comparison import (
    Comparison,
    chosen_metrics,
    compare,
    metric_names,
    most_different,
)
from faithbench.records.entrants import Entrant, find_entrants
from faithbench.records.schema import MetricFacts
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.tournament import Duel

WIDTH = 80
LEGEND = (
    "Explainers that share a letter are not significantly different (p >= .05 after Holm over the "
    "pairs of the table); the best mean and those not significantly worse are bold. "
    "Intervals are bootstrap, 95%. Effect is rank-biserial: +1 if the first is the "
    "higher on all examples."
)


def compare_command(*, explainers: list[str], task: str, results: Path, metrics: str) -> None:
    """Compare recorded explainers and print what is found."""
    console = Console()
    name = load_task(task).name if task.endswith(".toml") else task
    wanted = [part.strip() for part in metrics.split(",")]
    entrants = find_entrants(explainers, name, results, [m for m in wanted if m != "all"])
    chosen = chosen_metrics(wanted, entrants)
    ids = [row.id for row in entrants[0].records[0].rows]
    for line in _heading(entrants):
        console.print(line)
    for metric in chosen:
        table = {entrant.label: entrant.values(metric, ids) for entrant in entrants}
        for part in _report(compare(metric, entrants[0].metrics[metric], table)):
            console.print(part, highlight=False)
    console.print(Text(LEGEND, style="dim"))
    for part in _examples(entrants, chosen[0], ids):
        console.print(part)


def _heading(entrants: Sequence[Entrant]) -> Iterator[Text]:
    terms = entrants[0].conditions
    yield Text.assemble(
        (f"{terms.task} ({terms.source}, {terms.split}, n = {terms.n})", "bold"),
        f"; model {terms.model}, {terms.dtype}; erased by {terms.operator}",
    )
    for entrant in entrants:
        if len(entrant.seeds) > 1:
            yield Text(f"{entrant.label}: mean over seeds {', '.join(map(str, entrant.seeds))}")
    left = [n for n in metric_names(entrants) if any(n not in e.metrics for e in entrants)]
    if left:
        yield Text(f"not in all records, and left out: {', '.join(left)}", style="dim")


def _report(found: Comparison) -> Iterator[RenderableType]:
    yield Text()
    yield _title(found.metric, found.facts)
    yield _means(found)
    duels = found.tournament.duels
    tested = [duel for duel in duels if duel.adjusted is not None]
    if tested:
        kinds = sorted({_KINDS[duel.test.name] for duel in tested}, reverse=True)
        yield Text(f"{' and '.join(kinds)}, Holm over {len(tested)}:", style="dim")
        yield _tests(tested)
    for duel in duels:
        if duel.adjusted is None:
            yield Text(f"no test of {duel.first} and {duel.second}: {duel.test.reason}")


_KINDS = {"signed-rank": "Wilcoxon signed-rank", "McNemar": "exact McNemar (0/1 values)"}


def _title(metric: str, facts: MetricFacts) -> Text:
    better = {True: ", higher is better", False: ", lower is better", None: ""}
    name = TITLES.get(metric, metric)
    return Text(f"{name} ({facts.family}{better[facts.higher_is_better]})", style="bold")


def _means(found: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", overflow="fold", max_width=32)
    for title in ("mean", "interval", "ties", "n", "skipped"):
        table.add_column(title, justify="left" if title == "ties" else "right", overflow="fold")
    result = found.tournament
    for label in result.order:
        mean, interval, n, skipped = found.summaries[label]
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


def _tests(duels: Sequence[Duel]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    for title in ("first", "second"):
        table.add_column(title, overflow="fold", max_width=22)
    for title in ("n", "p", "after Holm", "effect"):
        table.add_column(title, justify="right", no_wrap=True)
    for duel in duels:
        test, adjusted = duel.test, duel.adjusted
        if test.p is not None and adjusted is not None:
            after = Text(f"{adjusted:.2g}", style="bold" if adjusted < ALPHA else "")
            numbers = (str(test.n), f"{test.p:.2g}", after, f"{test.effect:+.2f}")
            table.add_row(Text(duel.first), Text(duel.second), *numbers)
    return table


def _examples(entrants: Sequence[Entrant], metric: str, ids: Sequence[str]) -> Iterator[Text]:
    table = {e.label: e.values(metric, ids) for e in entrants}
    found = most_different(table, entrants[0].records[0].rows)
    if not found:
        return
    yield Text(
        f"\nThe {len(found)} examples on which they differ most in {TITLES.get(metric, metric)} "
        "(--metric names another):",
        style="bold",
    )
    for difference in found:
        yield Text(difference.id)
        told = [f"{label} {value:.3f}" for label, value in difference.values.items()]
        yield Text("  " + ", ".join(told))
        tokens = without_controls(" ".join(difference.tokens))
        line = Text(f"  {tokens}", style="dim")
        line.truncate(WIDTH, overflow="ellipsis")
        yield line

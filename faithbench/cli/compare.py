"""`faithbench compare`: means and ties, paired tests, and where explainers differ most."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import METRICS
from faithbench.cli.help.completion import complete_metrics
from faithbench.cli.options import HtmlFile, Results, TaskName
from faithbench.core.pieces import join_pieces

if TYPE_CHECKING:
    from faithbench.records.comparison import Difference
    from faithbench.records.entrants import Entrant

WIDTH = 80
LEGEND = (
    "Explainers that share a letter are not significantly different (p >= .05 after Holm over the "
    "pairs of the table); the best mean and those not significantly worse are bold. "
    "Intervals are bootstrap, 95%. Effect is rank-biserial: +1 if the first is better on all "
    "examples, or higher where neither is better."
)


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
            autocompletion=complete_metrics,
            rich_help_panel=METRICS,
        ),
    ] = "all",
    html: HtmlFile = None,
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
        console.print()
        console.print(compare_values(name, entrants[0].metrics[name], values), highlight=False)
    console.print(Text(LEGEND, style="dim"))
    differences = most_different(tables[chosen[0]], rows)
    for line in _examples(chosen[0], differences, entrants, coloured=console.is_terminal):
        console.print(line)
    if html is not None:
        from faithbench.leaderboard.html.report import board_of_files, write_report

        paths = [stored.path for entrant in entrants for stored in entrant.records]
        board = board_of_files(paths)
        write_report(board, html, f"faithbench compare: {board.tables[0].title}")
        console.print(f"page: {html}", highlight=False, markup=False, soft_wrap=True)


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


def _examples(
    metric: str, differences: Sequence[Difference], entrants: Sequence[Entrant], *, coloured: bool
) -> Iterator[Text]:
    """Show the examples as words: a heat map per explainer, or once where there is no colour."""
    from faithbench.metrics.registry import title_of
    from faithbench.run.heat_map import words_heat_map

    if not differences:
        return
    yield Text(
        f"\nThe {len(differences)} examples on which they differ most in "
        f"{title_of(metric)} (--metric names another):",
        style="bold",
    )
    rows = {e.label: {row.id: row for row in e.records[0].rows} for e in entrants}
    for difference in differences:
        yield Text(difference.id)
        values = {label: f"{label} {value:.3f}" for label, value in difference.values.items()}
        if not coloured:
            yield Text("  " + ", ".join(values.values()))
            if difference.tokens:
                plain = join_pieces(difference.tokens, [0.0] * len(difference.tokens))
                yield _one_line(words_heat_map(plain))
            continue
        for label, value in values.items():
            row = rows[label][difference.id]
            yield Text(f"  {value}", style="dim")
            if row.tokens:
                yield _one_line(words_heat_map(join_pieces(row.tokens, row.scores)))
    if textless := sum(not difference.tokens for difference in differences):
        yield Text(
            f"Published records have the words of bundled examples only: {textless} of these "
            "are not shown.",
            style="dim",
        )


def _one_line(words: Text) -> Text:
    line = Text("  ").append_text(words)
    line.truncate(WIDTH, overflow="ellipsis")
    return line

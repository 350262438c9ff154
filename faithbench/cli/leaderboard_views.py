"""The commands `leaderboard ranking` and `leaderboard power`: the board in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table as Grid

from faithbench.cli.help.command import METRICS, WHAT
from faithbench.cli.leaderboard import Records, Submissions
from faithbench.cli.options import PASSED
from faithbench.core.errors import FaithbenchError, unknown

if TYPE_CHECKING:
    from faithbench.leaderboard.board import Board, Column, RankedRow, Ranking, Table


def show_ranking(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    test: Annotated[
        Literal["pairwise", "nemenyi"],
        typer.Option(
            help="Compare pairs over the tables they share, or mean ranks over all.",
            rich_help_panel=WHAT,
        ),
    ] = "pairwise",
) -> None:
    """Show the faithfulness ranking over tables.

    With --test nemenyi: Friedman's test and Nemenyi's critical difference, of explainers that are
    ranked on all tables. There, whether two differ depends on who else takes part.
    """
    console = Console(highlight=False)
    board = _board(console, records, submissions)
    if test == "nemenyi":
        _show_nemenyi(console, board)
        return
    if board.ranking is None:
        raise FaithbenchError("no table ranks anybody; run more explainers, `random` among them")
    console.print(_ranking_grid(board.ranking))


def _board(console: Console, records: Path, submissions: Path) -> Board:
    from faithbench.leaderboard.build import make_board
    from faithbench.records.own_examples import without_strays
    from faithbench.records.passed import accepted_submissions

    with console.status("reading records"):
        submitted = without_strays(records, accepted_submissions(submissions, PASSED))
        return make_board(records, submitted.accepted)


def _ranking_grid(ranking: Ranking) -> Grid:
    from faithbench.leaderboard.pages.formatting import counted

    grid = Grid(box=None, caption=f"over {counted(len(ranking.tables), 'table')}", pad_edge=False)
    for name in ("explainer", "rank", "95%", "tables", "against the first", "skill"):
        grid.add_column(name, justify="left" if name == "explainer" else "right")
    for place, row in enumerate(ranking.rows):
        grid.add_row(*_ranking_cells(row, first=place == 0))
    grid.add_section()
    for row in ranking.below:
        grid.add_row(*_ranking_cells(row, standing="below the line"), style="dim")
    for row in ranking.controls:
        grid.add_row(*_ranking_cells(row, standing="control"), style="dim")
    return grid


def _ranking_cells(row: RankedRow, *, first: bool = False, standing: str = "") -> list[str]:
    from faithbench.leaderboard.pages.formatting import number

    if not standing:
        worse = f"worse on {len(row.worse_on)} of {len(row.tables)}"
        standing = "first" if first else "tied" if row.tied else worse
    ends = f"{row.ci95[0]:.1f} to {row.ci95[1]:.1f}" if row.ci95 else "-"
    return [
        row.label,
        f"{row.rank:.1f}",
        ends,
        str(len(row.tables)),
        standing,
        number(row.skill, 2),
    ]


def _show_nemenyi(console: Console, board: Board) -> None:
    from faithbench.leaderboard.rankings import counted_tables, mean_rank_test

    labels, tables, test = mean_rank_test(counted_tables(board.tables))
    if test is None:
        raise FaithbenchError("no explainer is ranked on all tables; use --test pairwise")
    grid = Grid(box=None, pad_edge=False)
    grid.add_column("explainer")
    grid.add_column("mean rank", justify="right")
    for label, rank in sorted(
        zip(labels, test.mean_ranks, strict=True), key=lambda pair: (pair[1], pair[0])
    ):
        grid.add_row(label, f"{rank:.2f}")
    console.print(grid)
    if test.friedman_p is None or test.critical_difference is None:
        console.print(f"no test: {test.reason}", markup=False)
        return
    console.print(
        f"{len(tables)} tables; Friedman p = {test.friedman_p:.2g}; mean ranks "
        f"{test.critical_difference:.2f} apart differ (Nemenyi, .05)",
        markup=False,
    )


def show_power(
    records: Records = Path("leaderboard/records"),
    submissions: Submissions = Path("submissions"),
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show the neighbours of one table.", rich_help_panel=WHAT
        ),
    ] = None,
    metric: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Metric whose neighbours are shown.", rich_help_panel=METRICS
        ),
    ] = "aopc",
) -> None:
    """Show what the examples of each table can tell apart.

    The smallest difference of two means that is found with a chance of 80% after Holm, the share
    of pairs above the line that differ by more, and how many examples would tell half of the
    neighbours apart.
    """
    console = Console(highlight=False)
    board = _board(console, records, submissions)
    if table is None:
        console.print(_power_grid(board))
        return
    names = [one.id for one in board.tables]
    if table not in names:
        raise unknown("table", table, names)
    chosen = board.tables[names.index(table)]
    console.print(_gap_grid(chosen, _column(chosen, metric)))


def _power_grid(board: Board) -> Grid:
    grid = Grid(box=None, pad_edge=False)
    for name in ("table", "n", "metric", "shows from", "pairs shown", "n for half"):
        grid.add_column(name, justify="left" if name in ("table", "metric") else "right")
    for table in board.tables:
        for row in _power_rows(table):
            grid.add_row(*row)
    return grid


def _power_rows(table: Table) -> Iterator[list[str]]:
    from faithbench.leaderboard.pages.formatting import number

    for column in table.columns:
        power = column.power
        if power is None or not (column.ranked or column.family != "faithfulness"):
            continue
        needed = sorted(gap.examples or 10**9 for gap in power.gaps)
        half = needed[(len(needed) - 1) // 2] if needed else None
        yield [
            table.id,
            str(table.n),
            column.metric,
            number(power.detectable),
            f"{power.separated:.0%}",
            "-" if half is None or half >= 10**9 else str(half),
        ]


def _column(table: Table, metric: str) -> Column:
    columns = {column.metric: column for column in table.columns if column.power is not None}
    if metric not in columns:
        raise unknown(f"tested metric of {table.id}", metric, columns)
    return columns[metric]


def _gap_grid(table: Table, column: Column) -> Grid:
    from faithbench.leaderboard.pages.formatting import number

    grid = Grid(box=None, pad_edge=False, caption=f"{table.id}, {column.metric}, n = {table.n}")
    for name in ("explainer", "next", "apart", "n to tell them apart"):
        grid.add_column(name, justify="left" if name in ("explainer", "next") else "right")
    for gap in column.power.gaps if column.power else ():
        needed = "-" if gap.examples is None else str(gap.examples)
        grid.add_row(gap.first, gap.second, number(abs(gap.difference), 4), needed)
    return grid

"""What the board shows, in a few plain sentences; each number in them comes from the board."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from faithbench.leaderboard.board import Board, OperatorPair, Power, RankedRow, Ranking, Table
from faithbench.leaderboard.operators import BEST
from faithbench.leaderboard.pages.formatting import counted, number
from faithbench.leaderboard.standings import GATE
from faithbench.stats.pairwise import ALPHA

MOST_NAMES = 4
"""How many explainers a sentence names; of more it tells the number."""


def findings(board: Board) -> list[str]:
    """Return one sentence per finding, the most important first; none without a ranking.

    Names are as the records have them: who writes markdown or HTML escapes them.
    """
    return list(_findings(board))


def _findings(board: Board) -> Iterator[str]:
    ranking = board.ranking
    if ranking is None:
        return
    tables = [table for table in board.tables if table.id in ranking.tables]
    yield _lead(ranking, tables)
    yield _ties(ranking)
    if any(len(row.tables) < len(tables) for row in ranking.rows):
        yield _coverage(ranking)
    if any(row.name == "random" for table in tables for row in table.entrants):
        yield _below(ranking)
    if board.operators:
        yield _operators(board.operators)
    powers = [power for table in tables if (power := _gate_power(table))]
    if powers:
        yield _power(powers)
    if len(tables) > 1:
        yield _over_tables(ranking)


def _lead(ranking: Ranking, tables: Sequence[Table]) -> str:
    first = ranking.rows[0]
    won = sum(_leads(table, first.label) for table in tables)
    own = counted(len(first.tables), "table")
    interval = f", 95% interval {_ends(first)}" if first.ci95 else ""
    return (
        f"{first.label} is the most faithful of {counted(len(ranking.rows), 'ranked explainer')} "
        f"(rank {first.rank:.2f}{interval}): it comes first on {won} of its {own}."
    )


def _leads(table: Table, label: str) -> bool:
    """Return whether nobody has a better place in a table."""
    places = {row.label: row.place for row in table.entrants if row.place is not None}
    return label in places and places[label] == min(places.values())


def _ties(ranking: Ranking) -> str:
    first, others = ranking.rows[0], ranking.rows[1:]
    tied = [row for row in others if row.tied]
    if not others:
        return f"Nobody else is ranked beside {first.label}."
    if not tied:
        return (
            "Nobody is tied with it: each of the others is significantly worse, over tables or by "
            "AOPC on at least half of its own."
        )
    names = _listed([f"{row.label} ({counted(len(row.tables), 'table')})" for row in tied])
    are = "is" if len(tied) == 1 else "are"
    rest = len(others) - len(tied)
    worse = "the other one is" if rest == 1 else f"the other {rest} are"
    return f"{names} {are} tied with it" + (
        f"; {worse} significantly worse, over tables or by AOPC on at least half of their own."
        if rest
        else "."
    )


def _coverage(ranking: Ranking) -> str:
    """Tell how many of the ranked are in all tables: a place on one table rests on little."""
    everywhere = sum(len(row.tables) == len(ranking.tables) for row in ranking.rows)
    once = sum(len(row.tables) == 1 for row in ranking.rows)
    return (
        f"{everywhere} of the {len(ranking.rows)} were measured on all {len(ranking.tables)} "
        f"tables and {once} on one only; every two are compared on the tables that they share."
    )


def _below(ranking: Ranking) -> str:
    every = len(ranking.rows) + len(ranking.below)
    if not ranking.below:
        return f"All {every} explainers are better than random scores by AOPC on most tables."
    stands = "stands" if len(ranking.below) == 1 else "stand"
    return (
        f"{len(ranking.below)} of {every} explainers {stands} below the line, not better than "
        f"random scores by AOPC on most of their tables: "
        f"{_listed([row.label for row in ranking.below])}."
    )


def _operators(pairs: Sequence[OperatorPair]) -> str:
    if len(pairs) == 1:
        return _operator(pairs[0])
    other = [pair for pair in pairs if not set(pair.leaders[0]) & set(pair.leaders[1])]
    taus = [pair.kendall_best for pair in pairs if pair.kendall_best is not None]
    agree = (
        f"; Kendall's tau of the two orders of the {BEST} best is {number(min(taus), 2)} to "
        f"{number(max(taus), 2)}"
        if taus
        else ""
    )
    return (
        f"On {len(other)} of {len(pairs)} tables another way of erasing tokens puts another "
        f"explainer first{agree}."
    )


def _operator(pair: OperatorPair) -> str:
    one, two = pair.operators
    first, second = (_listed(leaders) for leaders in pair.leaders)
    same = set(pair.leaders[0]) & set(pair.leaders[1])
    told = (
        f"{_listed(sorted(same))} comes first on {pair.first} whether tokens are erased by {one} "
        f"or by {two}"
        if same
        else f"Who comes first on {pair.first} depends on how tokens are erased: {first} by {one}, "
        f"{second} by {two}"
    )
    best = min(BEST, pair.shared)
    differ = pair.kendall_best is not None and pair.kendall_best < 1
    return (
        f"{told}; Kendall's tau of the two orders is {number(pair.kendall, 2)} over "
        f"{pair.shared} explainers and {number(pair.kendall_best, 2)} over the {best} best"
        + (", so that the order of the leaders differs." if differ else ".")
    )


def _gate_power(table: Table) -> Power | None:
    return next((column.power for column in table.columns if column.metric == GATE), None)


def _power(powers: Sequence[Power]) -> str:
    least = [power.detectable for power in powers]
    spread = f" ({number(min(least))} to {number(max(least))})" if len(least) > 1 else ""
    separated = median(power.separated for power in powers)
    return (
        f"A table can tell two explainers apart whose AOPC differs by {number(median(least))}"
        f"{spread}, at the median and with a chance of 80%: {separated:.0%} of the pairs differ by "
        "more."
    )


def _over_tables(ranking: Ranking) -> str:
    tables = counted(len(ranking.tables), "table")
    if ranking.least_p is None:
        return f"No two explainers share enough of the {tables} for a test over them."
    least = number(ranking.least_p, 2 if ranking.least_p >= ALPHA else 4)
    if ranking.least_p >= ALPHA:
        return (
            f"{tables} are too few for a test over tables to tell any two explainers apart: after "
            f"Holm its p value cannot be less than {least}, so that the tests inside tables decide."
        )
    tested = [pair for pair in ranking.pairs if pair.adjusted is not None]
    apart = sum((pair.adjusted or 0.0) < ALPHA for pair in tested)
    return (
        f"Over {tables}, {apart} of {counted(len(tested), 'pair')} of explainers differ "
        f"significantly (signed ranks; after Holm, p cannot be less than {least})."
    )


def _ends(row: RankedRow) -> str:
    low, high = row.ci95 or (row.rank, row.rank)
    return f"{low:.2f} to {high:.2f}"


def _listed(names: Sequence[str]) -> str:
    """Write names in a row: a, b and c; of many the first ones, and how many more there are."""
    if len(names) > MOST_NAMES:
        names = [*names[: MOST_NAMES - 1], f"{len(names) - MOST_NAMES + 1} more"]
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)

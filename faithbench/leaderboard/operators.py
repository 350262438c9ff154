"""The same examples erased in two ways: do their tables put explainers in the same order?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from faithbench.core.rounding import decimals
from faithbench.leaderboard.board import OperatorPair, Table
from faithbench.leaderboard.rankings import USUAL_OPERATOR, same_but_operator
from faithbench.leaderboard.standings import GATE
from faithbench.metrics.rank_correlation import kendall

BEST = 10
"""How many of the first table's leaders are compared apart: the order of the last matters less."""


def operator_pairs(tables: Sequence[Table]) -> tuple[OperatorPair, ...]:
    """Compare every two tables that differ in the operator alone, the usual one first."""
    ordered = sorted(tables, key=lambda table: (table.operator != USUAL_OPERATOR, table.id))
    return tuple(
        _pair(first, second)
        for first, second in combinations(ordered, 2)
        if same_but_operator(first) == same_but_operator(second)
        and first.operator != second.operator
    )


def _pair(first: Table, second: Table) -> OperatorPair:
    places, other_places = _places(first), _places(second)
    shared = sorted(set(places) & set(other_places), key=lambda label: (places[label], label))
    return OperatorPair(
        first=first.id,
        second=second.id,
        operators=(first.operator, second.operator),
        shared=len(shared),
        kendall=_kendall(shared, places, other_places),
        kendall_best=_kendall(shared[:BEST], places, other_places),
        kendall_aopc=_kendall(shared, _gate_means(first), _gate_means(second)),
        leaders=(_leaders(places), _leaders(other_places)),
    )


def _places(table: Table) -> dict[str, float]:
    return {row.label: row.place for row in table.entrants if row.place is not None}


def _gate_means(table: Table) -> dict[str, float]:
    column = next((c for c in table.columns if c.metric == GATE), None)
    cells = column.cells if column else {}
    return {label: score.mean for label, score in cells.items() if score.mean is not None}


def _kendall(
    labels: Sequence[str], first: Mapping[str, float], second: Mapping[str, float]
) -> float | None:
    """Return tau-b of two orders; None of fewer than two labels, or where all are tied."""
    known = [label for label in labels if label in first and label in second]
    tau = kendall(np.array([first[x] for x in known]), np.array([second[x] for x in known]))
    return None if tau is None else decimals(tau)


def _leaders(places: Mapping[str, float]) -> tuple[str, ...]:
    """Return those in the first place; several where they are even."""
    least = min(places.values(), default=0.0)
    return tuple(sorted(label for label, place in places.items() if place == least))

"""Every explainer against every other on one metric: tests, letters of ties, the best."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_letters
from typing import NamedTuple

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import significant
from faithbench.core.types import Floats
from faithbench.stats.pairwise import ALPHA, holm, mean_tests, paired_tests
from faithbench.stats.signed_rank import PairedTest
from faithbench.stats.summaries import Column


class Duel(NamedTuple):
    """Two explainers of a table: their test, and its p after Holm over the whole table."""

    first: str
    second: str
    test: PairedTest
    adjusted: float | None


@dataclass(frozen=True)
class Tournament:
    """A table of explainers, best mean first, and the results of its tests.

    `duels` has every pair, in that order. `letters` marks groups of ties; an explainer without a
    value has none. `ties` are those not significantly worse than the best mean; where a few
    examples dominate the mean, a test of ranks may even prefer one of them. A metric without a
    direction has no best, and the highest mean comes first.
    """

    means: dict[str, float | None]
    duels: tuple[Duel, ...]
    higher_is_better: bool | None
    alpha: float
    letters: dict[str, str]
    best: str | None
    ties: tuple[str, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Return the explainers' names, best mean first."""
        return tuple(self.means)

    @property
    def tested(self) -> int:
        """Return the number of pairs with a test, which is what Holm corrects for."""
        return sum(duel.adjusted is not None for duel in self.duels)

    def effect(self, duel: Duel) -> float:
        """Return the effect of a duel, turned so that + is better for the first."""
        return -duel.test.effect if self.higher_is_better is False else duel.test.effect

    def among(self, contenders: Collection[str]) -> Tournament:
        """Return the same tests, with letters, the best and its ties among some explainers only.

        The others were tested, and have their means; they can neither win nor tie.
        """
        present = [n for n, mean in self.means.items() if mean is not None and n in contenders]
        adjusted = {(duel.first, duel.second): duel.adjusted for duel in self.duels}
        marks = dict(zip(present, _letters(present, adjusted, self.alpha), strict=True))
        best = present[0] if present and self.higher_is_better is not None else None
        sign = -1 if self.higher_is_better is False else 1
        lost = {d.second for d in self.duels if d.first == best and _lost(d, sign, self.alpha)}
        return replace(
            self,
            letters={name: marks.get(name, "") for name in self.means},
            best=best,
            ties=tuple(n for n in present[1:] if n not in lost) if best is not None else (),
        )


def tournament(
    table: Mapping[str, Column | Floats],
    higher_is_better: bool | None,
    alpha: float = ALPHA,
    *,
    by_mean: bool = False,
) -> Tournament:
    """Test every pair of explainers on paired values, Holm-Bonferroni over all pairs.

    `table` has an explainer's values, one per example in the same order, None where missing (NaN
    in an array). `by_mean` tests means, for values whose order says nothing.
    """
    _check(table)
    arrays = {name: np.asarray(values, dtype=float) for name, values in table.items()}
    means = {name: _mean_of_present(values) for name, values in arrays.items()}
    sign = 1 if higher_is_better is False else -1
    order = sorted(means, key=lambda name: (*_sort_key(means[name], sign), name))
    pairs = list(combinations(range(len(order)), 2))
    test = mean_tests if by_mean else paired_tests
    tests = test([arrays[name] for name in order], pairs)
    stepped = iter(holm([test.p for test in tests if test.p is not None]))
    adjusted = [None if test.p is None else next(stepped) for test in tests]
    duels = tuple(
        Duel(first, second, test, p)
        for (first, second), test, p in zip(combinations(order, 2), tests, adjusted, strict=True)
    )
    tested = Tournament(
        means={name: means[name] for name in order},
        duels=duels,
        higher_is_better=higher_is_better,
        alpha=alpha,
        letters={},
        best=None,
        ties=(),
    )
    return tested.among(order)


def _letters(
    present: Sequence[str], adjusted: Mapping[tuple[str, str], float | None], alpha: float
) -> list[str]:
    """Return the letters of explainers with a value, in the order of their means."""
    size = len(present)
    matrix: list[list[float | None]] = [[None] * size for _ in present]
    for a, b in combinations(range(size), 2):
        matrix[a][b] = matrix[b][a] = adjusted[present[a], present[b]]
    return letters(matrix, alpha)


def _lost(duel: Duel, sign: int, alpha: float) -> bool:
    """Return whether the second is significantly worse; `sign` is -1 if lower is better."""
    return duel.adjusted is not None and duel.adjusted < alpha and sign * duel.test.effect > 0


def _mean_of_present(values: Floats) -> float | None:
    present = values[~np.isnan(values)].tolist()
    return significant(math.fsum(present) / len(present), 12) if present else None


def _sort_key(mean: float | None, sign: int) -> tuple[bool, float]:
    return (True, 0.0) if mean is None else (False, sign * mean)


def _check(table: Mapping[str, Column | Floats]) -> None:
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        raise FaithbenchError(
            "paired tests need one value per example of every explainer, found "
            f"{', '.join(f'{n} of {name}' for name, n in lengths.items())}; "
            "give the values of the same examples, None where one is missing"
        )


PValues = Sequence[Sequence[float | None]]


def letters(adjusted: PValues, alpha: float = ALPHA) -> list[str]:
    """Return the letters of each row of a symmetric matrix of adjusted p values.

    None, where there was no test, counts as not different. With the best explainer in the
    first row, `a` is the best one's letter.
    """
    groups = tie_groups(adjusted, alpha)
    return [
        "".join(_letter(index) for index, group in enumerate(groups) if row in group)
        for row in range(len(adjusted))
    ]


def tie_groups(adjusted: PValues, alpha: float = ALPHA) -> list[frozenset[int]]:
    """Return the largest groups of rows without a significant difference inside, first row first.

    Rows are added one by one: a new row joins those of each group that it is tied with, and the
    group also stays as it was if these are not all of it. New groups inside others are dropped.
    Insert and absorb (Piepho 2004), which goes pair by pair, ends with the same groups.
    """
    size = len(adjusted)
    if any(len(row) != size for row in adjusted):
        raise FaithbenchError(
            f"tie letters need a p value for every pair of {size} explainers, found rows of "
            f"{sorted({len(row) for row in adjusted})}; give a square matrix"
        )
    # A group is a number with a bit for each of its rows: `&` intersects, and `& ~` subtracts.
    groups: list[int] = []
    for row, p_values in enumerate(adjusted):
        tied = sum(1 << i for i, p in enumerate(p_values[:row]) if p is None or p >= alpha)
        kept = [group for group in groups if group & ~tied]
        groups = kept + _outermost({group & tied | 1 << row for group in groups} or {1 << row})
    members = [frozenset(row for row in range(size) if group >> row & 1) for group in groups]
    return sorted(members, key=sorted)


def _outermost(groups: set[int]) -> list[int]:
    """Drop groups inside others."""
    return [
        group
        for group in groups
        if not any(group != other and group & other == group for other in groups)
    ]


def _letter(index: int) -> str:
    """Return a to z, A to Z, then a2, b2, ...: more than 52 are rare, but must not collide."""
    turn, letter = divmod(index, len(ascii_letters))
    return ascii_letters[letter] + (str(turn + 1) if turn else "")

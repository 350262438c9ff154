"""Every explainer against every other on one metric: tests, groups of ties, the best."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from faithbench.errors import FaithbenchError
from faithbench.letters import letters
from faithbench.paired import paired_tests
from faithbench.rounding import significant
from faithbench.stats import ALPHA, Column, PairedTest, holm
from faithbench.types import Floats


class Duel(NamedTuple):
    """Two explainers of a table: their test, and its p after Holm over the whole table."""

    first: str
    second: str
    test: PairedTest
    adjusted: float | None


@dataclass(frozen=True)
class Tournament:
    """A table of explainers, best mean first, and what its tests say.

    `duels` has every pair, in that order. `letters` marks groups of ties; who has no value has
    none. `ties` are those not significantly worse than the best mean: a test of ranks may put
    one above it, where a few examples make the mean. A metric without a direction has no best,
    and the highest mean comes first.
    """

    means: dict[str, float | None]
    duels: tuple[Duel, ...]
    letters: dict[str, str]
    best: str | None
    ties: tuple[str, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Return the explainers' names, best mean first."""
        return tuple(self.means)

    @property
    def tested(self) -> int:
        """Return how many pairs have a test: what Holm counts."""
        return sum(duel.adjusted is not None for duel in self.duels)


def tournament(
    table: Mapping[str, Column | Floats], higher_is_better: bool | None, alpha: float = ALPHA
) -> Tournament:
    """Test every pair of explainers on paired values, Holm-Bonferroni over all pairs.

    `table` has an explainer's values, one per example in the same order, None where missing (NaN
    in an array).
    """
    _check(table)
    arrays = {name: np.asarray(values, dtype=float) for name, values in table.items()}
    means = {name: _mean(values) for name, values in arrays.items()}
    sign = 1 if higher_is_better is False else -1
    order = sorted(means, key=lambda name: (*_place(means[name], sign), name))
    pairs = list(combinations(range(len(order)), 2))
    tests = paired_tests([arrays[name] for name in order], pairs)
    stepped = iter(holm([test.p for test in tests if test.p is not None]))
    adjusted = [None if test.p is None else next(stepped) for test in tests]
    duels = tuple(
        Duel(one, other, test, p)
        for (one, other), test, p in zip(combinations(order, 2), tests, adjusted, strict=True)
    )
    present = [name for name in order if means[name] is not None]
    best = present[0] if present and higher_is_better is not None else None
    # The best comes first of all, and so do its duels.
    lost = {duel.second for duel in duels[: len(order) - 1] if _lost(duel, -sign, alpha)}
    ties = [name for name in present[1:] if name not in lost] if best is not None else []
    found = _letters(present, adjusted, len(order), alpha)
    return Tournament(
        {name: means[name] for name in order},
        duels,
        {name: found.get(name, "") for name in order},
        best,
        tuple(ties),
    )


def _letters(
    present: list[str], adjusted: list[float | None], size: int, alpha: float
) -> dict[str, str]:
    """Return the letters of those with a value, from the p values of all pairs in order."""
    matrix = np.full((size, size), None)
    matrix[np.triu_indices(size, 1)] = adjusted
    matrix.T[np.triu_indices(size, 1)] = adjusted
    # Who has a value comes before who has none.
    known = matrix[: len(present), : len(present)].tolist()
    return dict(zip(present, letters(known, alpha), strict=True))


def _lost(duel: Duel, sign: int, alpha: float) -> bool:
    """Say whether the second is significantly worse, where better is higher, or lower if -1."""
    return duel.adjusted is not None and duel.adjusted < alpha and sign * duel.test.effect > 0


def _mean(values: Floats) -> float | None:
    present = values[~np.isnan(values)].tolist()
    return significant(math.fsum(present) / len(present), 12) if present else None


def _place(mean: float | None, sign: int) -> tuple[bool, float]:
    return (True, 0.0) if mean is None else (False, sign * mean)


def _check(table: Mapping[str, Column | Floats]) -> None:
    lengths = {name: len(values) for name, values in table.items()}
    if len(set(lengths.values())) > 1:
        raise FaithbenchError(
            "paired tests need one value per example of every explainer, found "
            f"{', '.join(f'{n} of {name}' for name, n in lengths.items())}; "
            "give the values of the same examples, None where one is missing"
        )

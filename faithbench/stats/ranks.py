"""Ranks across tasks: mean rank, Friedman's test and Nemenyi's critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Floats
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.summaries import Column


@dataclass(frozen=True)
class RankTest:
    """Explainers ranked on several tasks; rank 1 is the best, ties share the mean of theirs.

    `ranks` has a row per task with all values; `left_out` counts the tasks without. Two
    explainers differ if their mean ranks are `critical_difference` apart, or by `nemenyi`, the
    p values of all pairs (adjusted for their number by the studentized range). `reason` says
    why there is no test.
    """

    ranks: tuple[tuple[float, ...], ...]
    mean_ranks: tuple[float, ...]
    left_out: int
    friedman_p: float | None = None
    critical_difference: float | None = None
    nemenyi: tuple[tuple[float, ...], ...] | None = None
    reason: str = ""


def rank_test(
    values: Sequence[Column], higher_is_better: Sequence[bool], alpha: float = ALPHA
) -> RankTest:
    """Rank explainers on every task and test the ranks (Demsar 2006, section 3.2).

    `values` has a row per task (or task and metric), one value per explainer; each row has its
    own direction. Rows with a missing value are left out.
    """
    _check(values, higher_is_better)
    rows = [
        average_ranks([v for v in row if v is not None], up)
        for row, up in zip(values, higher_is_better, strict=True)
        if None not in row
    ]
    left_out = len(values) - len(rows)
    tasks, explainers = len(rows), len(values[0])
    ranks = np.array(rows).reshape(tasks, explainers)
    known = tuple(map(tuple, ranks.tolist()))
    means = ranks.mean(axis=0) if tasks else np.empty(0)
    mean_ranks = tuple(means.tolist())
    if explainers < 3 or tasks < 2:
        here = f"(here {explainers} and {tasks})"
        reason = f"ranks are tested from 3 explainers and 2 tasks on {here}"
        return RankTest(known, mean_ranks, left_out, reason=reason)
    if np.ptp(ranks) == 0:
        return RankTest(known, mean_ranks, left_out, reason="all ranks are equal")
    return RankTest(
        known,
        mean_ranks,
        left_out,
        _friedman(ranks),
        critical_difference(explainers, tasks, alpha),
        nemenyi(means, tasks),
    )


def average_ranks(values: Sequence[float], higher_is_better: bool) -> list[float]:
    """Rank values, the best 1; equal ones share the mean of their ranks."""
    # Rounded, so that the last bit of a mean does not break a tie.
    rounded = np.round(values, 12)
    _, groups, counts = np.unique(
        -rounded if higher_is_better else rounded, return_inverse=True, return_counts=True
    )
    # A group of equal values ends at the sum of all counts so far, and has its mean rank.
    ranks: list[float] = (np.cumsum(counts) - (counts - 1) / 2)[groups].tolist()
    return ranks


def _friedman(ranks: Floats) -> float:
    """Return the p value of Friedman's test of ranks, a row per task, corrected for ties."""
    from scipy.special import chdtrc

    tasks, explainers = ranks.shape
    counts = [np.unique(row, return_counts=True)[1] for row in ranks]
    tied = sum(float((sizes**3 - sizes).sum()) for sizes in counts)
    most = tasks * explainers * (explainers + 1)
    spread = 12 / most * float((ranks.sum(axis=0) ** 2).sum()) - 3 * tasks * (explainers + 1)
    # Ties make the ranks of a row vary less than 1 to k do: the statistic is divided by the share.
    correction = 1 - tied / (most * (explainers - 1))
    return float(chdtrc(explainers - 1, spread / correction))


def critical_difference(explainers: int, tasks: int, alpha: float = ALPHA) -> float:
    """Return how far apart two mean ranks must be: q sqrt(k (k + 1) / 6 N) (Demsar 2006)."""
    return critical_width(alpha, explainers) / math.sqrt(2) * _spread(explainers, tasks)


def nemenyi(mean_ranks: Sequence[float] | Floats, tasks: int) -> tuple[tuple[float, ...], ...]:
    """Return the p value of every pair of mean ranks; 1 on the diagonal."""
    means, explainers = np.asarray(mean_ranks), len(mean_ranks)
    gaps = np.round(np.abs(means[:, None] - means[None]), 12)
    # Each tail is an integral, and many gaps are equal.
    distinct, indices = np.unique(gaps, return_inverse=True)
    scaled = distinct * math.sqrt(2) / _spread(explainers, tasks)
    p = np.where(distinct == 0, 1.0, tail(scaled, explainers))[indices.reshape(gaps.shape)]
    return tuple(map(tuple, p.tolist()))


def _spread(explainers: int, tasks: int) -> float:
    """Return the standard error of the difference of two mean ranks."""
    return math.sqrt(explainers * (explainers + 1) / (6 * tasks))


def _check(values: Sequence[Column], higher_is_better: Sequence[bool]) -> None:
    if not values or len(values) != len(higher_is_better) or len({len(v) for v in values}) != 1:
        raise FaithbenchError(
            "ranking needs one row of values per task, all of one length, and a direction for "
            f"each; found rows of {[len(v) for v in values]} values and {len(higher_is_better)} "
            "directions; fill gaps with None"
        )


_STEP = 1 / 64
"""Distance of the points at which the integral is evaluated."""
_WIDEST = 40.0
"""A width that the range of normal values does not reach, whatever their number."""


def tail(widths: Floats, values: int) -> Floats:
    """Return the probability that n normal values span more than each of `widths`.

    This is the tail of the studentized range with infinite degrees of freedom. All values lie
    within q of the lowest one, z, with probability
    integral of n phi(z) (Phi(z + q) - Phi(z))^(n - 1) dz.
    """
    from scipy.special import ndtr

    # The trapezoid rule converges exponentially for a smooth function that vanishes on both ends:
    # this is as exact as `scipy.stats.studentized_range`, which takes a second to import.

    lowest = np.arange(-10, 10, _STEP)
    density = np.exp(-(lowest**2) / 2) / np.sqrt(2 * np.pi)
    above = ndtr(lowest + np.asarray(widths)[..., None]) - ndtr(lowest)
    within: Floats = values * (above ** (values - 1) @ density) * _STEP
    return np.clip(1 - within, 0.0, 1.0)


def critical_width(alpha: float, values: int) -> float:
    """Return the width that the range of n normal values exceeds with probability `alpha`."""
    low, high = 0.0, _WIDEST
    middle = (low + high) / 2
    # The tail falls as widths grow, so halve until no number lies between the two.
    while low < middle < high:
        if tail(np.array([middle]), values)[0] > alpha:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle

"""Who has a place in a table: the gate, the ranks by aspects of faithfulness, and skill.

An explainer that is not better than random scores by AOPC, after Holm, stands below a line. Those
above it are ranked by each aspect of faithfulness once, and then by their mean rank over aspects.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final, get_args

from faithbench.core.rounding import decimals
from faithbench.leaderboard.board import Column, Score, Standing
from faithbench.leaderboard.gather import Group
from faithbench.metrics.kinds import Aspect
from faithbench.metrics.registry import METRICS
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.ranks import average_ranks
from faithbench.stats.tournament import Tournament

GATE: Final = "aopc"
"""The metric by which a method must be better than random scores."""
SHELVES: Final[tuple[Standing, ...]] = get_args(Standing)
"""Standings in the order in which tables show them."""


def standings_of(
    group: Group, gate: Tournament | None, ranked: Sequence[Mapping[str, float | None]]
) -> dict[str, Standing]:
    """Return the standing of each explainer of a group.

    `gate` has the tests of the metric that tells methods from random scores, and `ranked` what
    explainers are ranked by. Without random scores on the table there is no line.
    """
    beaten = {entry.label for entry in group.entries if entry.is_random}
    standings: dict[str, Standing] = {}
    for entry in group.entries:
        label = entry.label
        if entry.is_control:
            standings[label] = "control"
        elif gate is not None and beaten and not _better(gate, label, beaten):
            standings[label] = "below"
        elif any(means.get(label) is None for means in ranked):
            standings[label] = "incomplete"
        else:
            standings[label] = "ranked"
    return standings


def _better(gate: Tournament, label: str, random: set[str]) -> bool:
    """Return whether an explainer is significantly better than random scores."""
    sign = -1 if gate.higher_is_better is False else 1
    for duel in gate.duels:
        if duel.first == label and duel.second in random:
            effect = sign * duel.test.effect
        elif duel.second == label and duel.first in random:
            effect = -sign * duel.test.effect
        else:
            continue
        if duel.adjusted is None or duel.adjusted >= ALPHA or effect <= 0:
            return False
    return gate.means.get(label) is not None


def is_above(standing: Standing) -> bool:
    """Return whether an explainer is above the line: it can be the best, or tied with it."""
    return standing in ("ranked", "incomplete")


def filled_mean(mean: float | None, n: int, skipped: int, blank: float | None) -> float | None:
    """Return a mean in which missing values count as `blank`, if there is such a value."""
    if blank is None or not n + skipped:
        return mean
    return ((mean or 0.0) * n + blank * skipped) / (n + skipped)


def rank_value(column: Column, label: str) -> float | None:
    """Return what an explainer is ranked by in a column, higher for better."""
    score: Score | None = column.cells.get(label)
    if score is None:
        return None
    blank = METRICS[column.metric.split("@")[0]].blank
    value = filled_mean(score.mean, score.n, score.skipped, blank)
    return value if value is None or column.higher_is_better else -value


def ranked_columns(columns: Sequence[Column]) -> dict[Aspect, Column]:
    """Return the one column that each aspect is ranked by, of those that a table has."""
    return {c.aspect: c for c in columns if c.ranked and c.aspect is not None}


def aspect_ranks(
    columns: Sequence[Column], standings: Mapping[str, Standing]
) -> dict[str, dict[Aspect, float]]:
    """Rank the explainers of a table by each aspect of faithfulness."""
    labels = [label for label, standing in standings.items() if standing == "ranked"]
    ranks: dict[str, dict[Aspect, float]] = {label: {} for label in labels}
    for aspect, column in ranked_columns(columns).items():
        values = [rank_value(column, label) for label in labels]
        known = [value for value in values if value is not None]
        assert len(known) == len(labels), "who lacks a value is not ranked"
        for label, rank in zip(labels, average_ranks(known, True) if known else (), strict=True):
            ranks[label][aspect] = rank
    return ranks


def places_of(ranks: Mapping[str, Mapping[Aspect, float]]) -> dict[str, float]:
    """Rank explainers by the mean of their ranks by aspects."""
    means = {label: fmean(own.values()) for label, own in ranks.items() if own}
    return dict(zip(means, average_ranks(list(means.values()), False), strict=True))


def skills_of(
    means: Mapping[str, float | None],
    random: str | None,
    best: str | None,
    attainable: float | None,
    higher_is_better: bool | None,
) -> dict[str, float]:
    """Return (mean - random) / (best - random) of each explainer; nothing where that has no sense.

    The best is a perfect explainer's value if one is known, else the best of the table, which
    must be better than random scores.
    """
    zero = None if random is None else means.get(random)
    top = attainable if attainable is not None else (None if best is None else means.get(best))
    if zero is None or top is None or best is None:
        return {}
    # Where the best is no better than random scores, there is no scale between the two.
    if decimals(top - zero if higher_is_better else zero - top) <= 0:
        return {}
    return {
        label: decimals((mean - zero) / (top - zero))
        for label, mean in means.items()
        if mean is not None
    }

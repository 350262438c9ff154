"""What the examples of a column can tell apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations, pairwise

import numpy as np

from faithbench.core.rounding import decimals
from faithbench.core.types import Floats
from faithbench.leaderboard.board import Gap, Power
from faithbench.stats.power import detectable, examples_needed
from faithbench.stats.tournament import Tournament


def power_of(
    values: Mapping[str, Floats], result: Tournament, above: Collection[str]
) -> Power | None:
    """Return the power of a column's tests; None where fewer than two explainers can be tested.

    Of explainers above the line: others are not compared with each other.
    """
    order = [label for label in result.order if label in above and result.means[label] is not None]
    pairs = list(combinations(order, 2))
    if not pairs or result.higher_is_better is None:
        return None
    changes = {(a, b): values[a] - values[b] for a, b in pairs}
    spreads = {pair: _spread(change) for pair, change in changes.items()}
    gaps = {pair: _mean(change) for pair, change in changes.items()}
    tests = max(1, result.tested)
    middle = float(np.median(list(spreads.values())))
    n = int(np.median([(~np.isnan(change)).sum() for change in changes.values()]))
    least = detectable(middle, n, tests)
    if least is None:
        return None
    return Power(
        detectable=decimals(least),
        separated=decimals(float(np.mean([abs(gap) > least for gap in gaps.values()]))),
        gaps=tuple(
            Gap(a, b, decimals(gaps[a, b]), examples_needed(gaps[a, b], spreads[a, b], tests))
            for a, b in pairwise(order)
        ),
    )


def _spread(change: Floats) -> float:
    """Return the standard deviation of differences; 0 of fewer than two."""
    present = change[~np.isnan(change)]
    return float(present.std(ddof=1)) if len(present) > 1 else 0.0


def _mean(change: Floats) -> float:
    present = change[~np.isnan(change)]
    return decimals(float(present.mean())) if len(present) else 0.0

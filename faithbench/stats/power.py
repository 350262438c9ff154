"""What a number of examples can tell apart: the smallest difference that tests would find."""

from __future__ import annotations

import math
from statistics import NormalDist

from faithbench.stats.pairwise import ALPHA

POWER = 0.8
"""The chance with which a difference is to be found."""
# The signed-rank test needs pi / 3 times as many pairs as a t test where differences are normal.
_SIGNED_RANK = math.pi / 3


def detectable(spread: float, n: int, tests: int, alpha: float = ALPHA) -> float | None:
    """Return the smallest mean difference that n pairs show with a chance of 80%.

    `spread` is the standard deviation of the paired differences, and `tests` the number of tests
    that Holm's method corrects for: the hardest of its steps is counted, alpha / tests.
    """
    if n < 2 or tests < 1 or spread <= 0:
        return None
    return _reach(tests, alpha) * spread * math.sqrt(_SIGNED_RANK / n)


def examples_needed(
    difference: float, spread: float, tests: int, alpha: float = ALPHA
) -> int | None:
    """Return how many pairs show a mean difference with a chance of 80%; None for no difference."""
    if difference == 0 or tests < 1:
        return None
    return math.ceil(_SIGNED_RANK * (_reach(tests, alpha) * spread / difference) ** 2)


def _reach(tests: int, alpha: float) -> float:
    """Return the distance, in standard errors, that a two-sided test finds with that chance."""
    normal = NormalDist()
    return normal.inv_cdf(1 - alpha / (2 * tests)) + normal.inv_cdf(POWER)

"""The range of several standard normal values: what Nemenyi's test compares mean ranks by.

scipy has it for any number of degrees of freedom, but importing scipy.stats takes a second, and
with infinitely many degrees the distribution is one smooth integral.
"""

from __future__ import annotations

import numpy as np

from faithbench.types import Floats

_STEP = 1 / 64
_WIDEST = 40.0
"""No range of any number of values that fits into memory is as wide."""


def tail(widths: Floats, values: int) -> Floats:
    """Return how likely the range of so many values is wider than each of `widths`.

    All lie within q above the lowest, z: the integral of n phi(z) (Phi(z + q) - Phi(z))^(n - 1).
    The trapezoid rule is exact to the last digits for a smooth function that vanishes on both
    ends.
    """
    from scipy.special import ndtr

    lowest = np.arange(-10, 10, _STEP)
    density = np.exp(-(lowest**2) / 2) / np.sqrt(2 * np.pi)
    above = ndtr(lowest + np.asarray(widths)[..., None]) - ndtr(lowest)
    within: Floats = values * (above ** (values - 1) @ density) * _STEP
    return np.clip(1 - within, 0.0, 1.0)


def critical_width(alpha: float, values: int) -> float:
    """Return the width that the range of so many values exceeds with probability `alpha`."""
    low, high = 0.0, _WIDEST
    middle = (low + high) / 2
    # Halved until no number lies between: the tail falls all the way.
    while low < middle < high:
        if tail(np.array([middle]), values)[0] > alpha:
            low = middle
        else:
            high = middle
        middle = (low + high) / 2
    return middle

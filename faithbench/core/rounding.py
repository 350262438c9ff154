"""How precisely numbers are kept, so that last-bit noise of a device does not reach a file."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_EXACT = 22
"""Ten to this power is the largest that a double holds exactly."""


def significant(value: float, digits: int) -> float:
    """Round to so many significant digits; minus zero becomes zero."""
    return float(f"{value:.{digits - 1}e}") + 0.0


def all_significant(values: Sequence[float | None], digits: int) -> list[float | None]:
    """Round many numbers as `significant` does; None stays None.

    A whole number divided by a power of ten is the double nearest to that decimal number as long
    as both are exact, so that only the smallest, and those near the middle of two, go through
    text.
    """
    given = np.array(values, dtype=float)  # None becomes NaN
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(given)))
        exact = (places >= 0) & (places <= _EXACT)
        scale = 10.0 ** np.where(exact, places, 0.0)
        scaled = given * scale
        exact &= np.abs(scaled - np.floor(scaled) - 0.5) > 1e-3
        rounded: list[float | None] = (np.round(scaled) / scale + 0.0).tolist()
    for place in np.flatnonzero(~exact).tolist():
        value = values[place]
        rounded[place] = None if value is None else significant(value, digits)
    return rounded


def decimals(value: float) -> float:
    """Round to 9 decimals; minus zero becomes zero."""
    # Plus zero: -1e-12 and 1e-12 should both be stored as 0.0.
    return round(float(value), 9) + 0.0

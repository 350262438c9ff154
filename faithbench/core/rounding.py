"""Rounding of numbers before they are written, so that the noise of a device stays out of files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_EXACT = 22
"""The largest power of ten that a double holds exactly: 5^22 < 2^53."""


def significant(value: float, digits: int) -> float:
    """Round to `digits` significant digits; minus zero becomes zero."""
    return float(f"{value:.{digits - 1}e}") + 0.0


def all_significant(values: Sequence[float | None], digits: int) -> list[float | None]:
    """Round many numbers as `significant` does, but faster; None stays None."""
    given = np.array(values, dtype=float)  # None becomes NaN
    with np.errstate(divide="ignore", invalid="ignore"):
        decimals_kept = digits - 1 - np.floor(np.log10(np.abs(given)))
        # A whole number divided by a power of ten is correctly rounded if both are exact: it is
        # then the double nearest to the decimal number, which is what parsing text gives.
        safe = (decimals_kept >= 0) & (decimals_kept <= _EXACT)
        scale = 10.0 ** np.where(safe, decimals_kept, 0.0)
        scaled = given * scale
        # The product itself may be off in its last bit, which matters half-way between two.
        safe &= np.abs(scaled - np.floor(scaled) - 0.5) > 1e-3
        rounded: list[float | None] = (np.round(scaled) / scale + 0.0).tolist()
    for index in np.flatnonzero(~safe).tolist():
        value = values[index]
        rounded[index] = None if value is None else significant(value, digits)
    return rounded


def decimals(value: float) -> float:
    """Round to 9 decimals; minus zero becomes zero."""
    # Plus zero: -1e-12 and 1e-12 should both be stored as 0.0.
    return round(float(value), 9) + 0.0

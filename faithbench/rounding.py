"""How precisely numbers are kept, so that last-bit noise of a device does not reach a file."""

from __future__ import annotations


def significant(value: float, digits: int) -> float:
    """Round to so many significant digits; minus zero becomes zero."""
    return float(f"{value:.{digits - 1}e}") + 0.0


def decimals(value: float) -> float:
    """Round to 9 decimals; minus zero becomes zero."""
    # Plus zero: -1e-12 and 1e-12 should both be stored as 0.0.
    return round(float(value), 9) + 0.0

"""How precisely numbers are kept, so that last-bit noise of a device does not reach a file."""

from __future__ import annotations

from collections.abc import Sequence


def significant(value: float, digits: int) -> float:
    """Round to so many significant digits; minus zero becomes zero."""
    return float(f"{value:.{digits - 1}e}") + 0.0


def all_significant(values: Sequence[float], digits: int) -> list[float]:
    """Round many numbers as `significant` does, in a third of the time."""
    return _read_back(f"%.{digits - 1}e ", values)


def all_decimals(values: Sequence[float], digits: int) -> list[float]:
    """Round many numbers to so many decimals, as `round` does; minus zero becomes zero."""
    return _read_back(f"%.{digits}f ", values)


def _read_back(form: str, values: Sequence[float]) -> list[float]:
    """Write all numbers in one text and read them again: the nearest number to each decimal."""
    return [float(text) + 0.0 for text in (form * len(values) % tuple(values)).split()]


def decimals(value: float) -> float:
    """Round to 9 decimals; minus zero becomes zero."""
    # Plus zero: -1e-12 and 1e-12 should both be stored as 0.0.
    return round(float(value), 9) + 0.0

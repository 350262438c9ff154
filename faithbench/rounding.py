"""How precisely numbers are kept, so that last-bit noise of a device does not reach a file."""

from __future__ import annotations

from collections.abc import Sequence


def significant(value: float, digits: int) -> float:
    """Round to so many significant digits; minus zero becomes zero."""
    return float(f"{value:.{digits - 1}e}") + 0.0


def all_significant(values: Sequence[float | None], digits: int) -> list[float | None]:
    """Round many numbers as `significant` does, by one text of them all; None stays None."""
    known = tuple(value for value in values if value is not None)
    texts = (f"%.{digits - 1}e " * len(known) % known).split()
    rounded = [float(text) + 0.0 for text in texts]
    if len(rounded) == len(values):
        return [*rounded]
    left = iter(rounded)
    return [None if value is None else next(left) for value in values]


def decimals(value: float) -> float:
    """Round to 9 decimals; minus zero becomes zero."""
    # Plus zero: -1e-12 and 1e-12 should both be stored as 0.0.
    return round(float(value), 9) + 0.0

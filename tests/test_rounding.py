"""Rounding to significant digits."""

from __future__ import annotations

from faithbench.rounding import significant


def test_significant_digits() -> None:
    assert significant(123456789.0, 7) == 123456800.0
    assert significant(-1.23456789e-20, 7) == -1.234568e-20
    assert str(significant(-0.0, 7)) == "0.0"

"""Rounding to significant digits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from faithbench.core.rounding import all_significant, significant


def test_significant_digits() -> None:
    assert significant(123456789.0, 7) == 123456800.0
    assert significant(-1.23456789e-20, 7) == -1.234568e-20
    assert str(significant(-0.0, 7)) == "0.0"


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False)), st.integers(1, 12))
def test_many_are_rounded_as_one_is(values: list[float | None], digits: int) -> None:
    found = all_significant(values, digits)
    assert found == [None if v is None else significant(v, digits) for v in values]
    assert "-0.0" not in map(str, found)

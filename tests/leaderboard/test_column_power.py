"""What a column's examples tell apart, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from faithbench.leaderboard.column_power import power_of
from faithbench.stats.power import detectable, examples_needed
from faithbench.stats.tournament import tournament

RNG = np.random.default_rng(0)
VALUES = {
    "high": RNG.normal(0.8, 0.1, 40),
    "middle": RNG.normal(0.5, 0.1, 40),
    "low": RNG.normal(0.49, 0.1, 40),
    "below": RNG.normal(0.1, 0.1, 40),
}


def test_the_detectable_difference_is_that_of_the_median_spread() -> None:
    result = tournament(VALUES, higher_is_better=True)
    power = power_of(VALUES, result, ("high", "middle", "low"))
    assert power is not None
    spreads = [
        np.std(VALUES[a] - VALUES[b], ddof=1)
        for a, b in (("high", "middle"), ("high", "low"), ("middle", "low"))
    ]
    # Holm counts all six pairs that were tested.
    assert power.detectable == pytest.approx(detectable(float(np.median(spreads)), 40, 6), abs=1e-9)
    assert power.separated == pytest.approx(2 / 3, abs=1e-9)


def test_neighbours_have_the_number_of_examples_that_would_part_them() -> None:
    power = power_of(VALUES, tournament(VALUES, higher_is_better=True), tuple(VALUES))
    assert power is not None
    assert [gap[:2] for gap in power.gaps] == [
        ("high", "middle"), ("middle", "low"), ("low", "below"),
    ]  # fmt: skip
    change = VALUES["middle"] - VALUES["low"]
    gap = power.gaps[1]
    assert gap.difference == pytest.approx(change.mean(), abs=1e-9)
    assert gap.examples == examples_needed(gap.difference, float(change.std(ddof=1)), 6)
    assert gap.examples > 40 and (power.gaps[0].examples or 0) < 40


def test_one_explainer_or_no_direction_has_no_power() -> None:
    assert power_of(VALUES, tournament(VALUES, True), ("high",)) is None
    assert power_of(VALUES, tournament(VALUES, None), tuple(VALUES)) is None
    same = {"a": np.ones(8), "b": np.ones(8)}
    assert power_of(same, tournament(same, True), ("a", "b")) is None


def test_missing_values_are_left_out() -> None:
    gaps = VALUES["low"].copy()
    gaps[::2] = np.nan
    values = {"high": VALUES["high"], "low": gaps}
    power = power_of(values, tournament(values, True), ("high", "low"))
    change = (VALUES["high"] - gaps)[1::2]
    assert power is not None
    assert power.detectable == pytest.approx(detectable(float(change.std(ddof=1)), 20, 1), abs=1e-9)

"""Costs are added up, and read as the difference between two moments."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from faithbench.models.meter import Cost, Meter


def test_a_new_meter_is_at_zero() -> None:
    assert Meter().total == Cost(forwards=0, backwards=0, passes=0, shared_seconds=0.0)


def test_charges_add_up() -> None:
    meter = Meter()
    meter.charge(forwards=3)
    meter.charge(forwards=2, backwards=2)
    meter.charge(forwards=4, backwards=4, shared_seconds=0.25)
    meter.charge(passes=0, shared_seconds=0.5)
    assert meter.total == Cost(forwards=9, backwards=6, passes=3, shared_seconds=0.75)


def test_since_counts_what_came_after() -> None:
    meter = Meter()
    meter.charge(forwards=3, shared_seconds=1.0)
    start = meter.total
    assert meter.since(start) == Cost()
    meter.charge(forwards=5, backwards=1, passes=2, shared_seconds=0.5)
    assert meter.since(start) == Cost(5, 1, 2, 0.5)
    assert start == Cost(3, 0, 1, 1.0), "a reading does not move with the meter"


def test_passes_of_another_network_are_counted_apart_and_added() -> None:
    meter = Meter()
    meter.charge(forwards=1, backwards=1)
    start = meter.total
    assert start.forward_equivalents == 3
    meter.charge(elsewhere=0.125)
    meter.charge(forwards=2, elsewhere=0.25)
    assert meter.total == Cost(3, 1, 3, 0.0, elsewhere=0.375)
    assert meter.since(start) == Cost(2, 0, 2, 0.0, elsewhere=0.375)
    assert meter.since(start).forward_equivalents == 2.375


def test_what_another_network_costs_does_not_depend_on_what_was_charged_before() -> None:
    """A run that is continued has the bytes of one that was not."""
    fresh, used = Meter(), Meter()
    fresh.charge(elsewhere=0.0612345678912)
    for _ in range(1000):
        used.charge(elsewhere=1.7)
    start = used.total
    used.charge(elsewhere=0.0612345678912)
    assert used.since(start).elsewhere == fresh.total.elsewhere
    assert fresh.total.elsewhere == pytest.approx(0.0612345678912, abs=5e-10)


def test_meters_do_not_share_and_readings_are_frozen() -> None:
    first, second = Meter(), Meter()
    first.charge(forwards=1)
    assert second.total.forwards == 0
    with pytest.raises(FrozenInstanceError):
        first.total.forwards = 7

"""The table of costs: where a record keeps each, and what reads it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from faithbench.metrics.cost import (
    COSTS,
    FORWARD_EQUIVALENTS,
    FORWARDS,
    PEAK_MEMORY,
    SECONDS,
    wants_timing,
)
from faithbench.metrics.registry import METRICS, find_metrics
from faithbench.records.schema import CostFacts, TimingFacts

RECORD = SimpleNamespace(
    timing=TimingFacts(
        alone=6,
        seconds_median=0.25,
        seconds_ci95=(0.2, 0.375),
        peak_memory_bytes=3_000_000,
        seconds_total=2.0,
    ),
    cost=CostFacts(
        rows_asked=9,
        distinct_rows=8,
        forwards_per_example=3.0,
        backwards_per_example=1.0,
        forward_equivalents_per_example=5.0,
    ),
)


def test_costs_are_read_from_a_record() -> None:
    values = {cost.name: cost.score(RECORD) for cost in COSTS}
    assert values == {
        "seconds": 0.25,
        "peak_memory": 3_000_000,
        "forwards": 3.0,
        "backwards": 1.0,
        "forward_equivalents": 5.0,
    }
    assert SECONDS.interval(RECORD) == (0.2, 0.375)
    assert PEAK_MEMORY.interval(RECORD) is None


def test_costs_are_the_family_of_speed() -> None:
    assert [cost.name for cost in COSTS] == [metric.name for metric in find_metrics("speed")]
    for cost in COSTS:
        assert METRICS[cost.name] is cost
        assert (cost.higher_is_better, cost.low, cost.in_rows) == (False, 0.0, False)
    assert [cost.unit for cost in COSTS] == ["seconds", "bytes", "rows", "rows", "rows"]


@pytest.mark.parametrize(
    ("names", "timed"),
    [("seconds", True), ("aopc,peak_memory", True), ("forwards,aopc", False), ("all", True)],
)
def test_clock_and_memory_need_the_explainer_alone(names: str, timed: bool) -> None:
    assert wants_timing(find_metrics(names)) is timed
    assert SECONDS.of_machine and PEAK_MEMORY.of_machine
    assert not FORWARDS.of_machine and not FORWARD_EQUIVALENTS.of_machine

"""The cost of passes, by hand."""

from __future__ import annotations

from faithbench.core.cost import forward_equivalents


def test_a_backward_costs_two_forwards_and_other_networks_what_they_say() -> None:
    assert forward_equivalents(3, 2, 0.0) == 7
    assert forward_equivalents(1, 0, 0.0625) == 1.0625
    assert forward_equivalents(0.5, 0.25, 0.125) == 1.125

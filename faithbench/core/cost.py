"""The one formula that turns passes into a cost."""

from __future__ import annotations


def forward_equivalents(forwards: float, backwards: float, elsewhere: float) -> float:
    """Return a cost in forwards of the model; by convention a backward costs as much as two.

    `elsewhere` is the cost of passes through other networks, already in forwards of the model.
    """
    return forwards + 2 * backwards + elsewhere

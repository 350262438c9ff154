"""Counts rows that go through the network, so that cost can be compared across machines."""

from __future__ import annotations

from dataclasses import dataclass, replace

from faithbench.core.cost import forward_equivalents

_PARTS = 2**30
"""A forward in its smallest parts: of size 1e-9, and totals up to 8 million forwards are exact."""


@dataclass(frozen=True)
class Cost:
    """Rows through the network forwards and backwards, passes, and seconds saved by sharing.

    `shared_seconds` is the time that reused passes took when they were made. `elsewhere` are the
    rows that went through another network, in forwards of the model: the FLOPs of each row's pass
    divided by those of one forward of the model on the same example (`models.flops`).
    """

    forwards: int = 0
    backwards: int = 0
    passes: int = 0
    shared_seconds: float = 0.0
    elsewhere: float = 0.0

    @property
    def forward_equivalents(self) -> float:
        """The whole cost in forwards of the model."""
        return forward_equivalents(self.forwards, self.backwards, self.elsewhere)


class Meter:
    """A running total of costs. The run reads it before and after each explainer."""

    def __init__(self) -> None:
        self.total = Cost()

    def charge(
        self,
        *,
        forwards: int = 0,
        backwards: int = 0,
        passes: int = 1,
        shared_seconds: float = 0.0,
        elsewhere: float = 0.0,
    ) -> None:
        """Add the rows of one pass; a pass reused from another explainer adds its seconds.

        A pass of another network adds the sum over its rows of what each is worth `elsewhere`.
        """
        self.total = replace(
            self.total,
            forwards=self.total.forwards + forwards,
            backwards=self.total.backwards + backwards,
            passes=self.total.passes + passes,
            shared_seconds=self.total.shared_seconds + shared_seconds,
            # In whole parts of a forward: sums and differences of those are exact, so that what
            # an explainer is charged does not depend on what was charged before.
            elsewhere=self.total.elsewhere + round(elsewhere * _PARTS) / _PARTS,
        )

    def since(self, start: Cost) -> Cost:
        """Return the cost charged since the total was `start`."""
        return Cost(
            self.total.forwards - start.forwards,
            self.total.backwards - start.backwards,
            self.total.passes - start.passes,
            self.total.shared_seconds - start.shared_seconds,
            self.total.elsewhere - start.elsewhere,
        )

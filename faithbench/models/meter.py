"""Counts what goes through the network, so that cost can be compared across machines."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Cost:
    """Rows through the network, and seconds of a shared pass that was not paid again."""

    forwards: int = 0
    backwards: int = 0
    passes: int = 0
    shared_seconds: float = 0.0


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
    ) -> None:
        """Add one pass of so many rows; a pass reused from another explainer adds its seconds."""
        self.total = replace(
            self.total,
            forwards=self.total.forwards + forwards,
            backwards=self.total.backwards + backwards,
            passes=self.total.passes + passes,
            shared_seconds=self.total.shared_seconds + shared_seconds,
        )

    def since(self, start: Cost) -> Cost:
        """Return what was charged after `start` was read."""
        return Cost(
            self.total.forwards - start.forwards,
            self.total.backwards - start.backwards,
            self.total.passes - start.passes,
            self.total.shared_seconds - start.shared_seconds,
        )

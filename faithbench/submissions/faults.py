"""What is wrong with a submission: each fault is one line that names file, field and remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from faithbench.core.text import readable

AGAIN = "measure the submission again, and change nothing by hand"


@dataclass(frozen=True)
class Fault:
    """One proof that failed."""

    file: str
    field: str
    said: str
    remedy: str = AGAIN

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.file}: {self.field}: {self.said}; {self.remedy}"


def differing(file: str, part: str, found: object, wanted: Mapping[str, object]) -> Iterator[Fault]:
    """Compare fields of a part of a record with what they should be."""
    for name, value in wanted.items():
        own = getattr(found, name)
        if own != value:
            yield Fault(file, f"{part}.{name}" if part else name, told(own, value))


def told(found: object, wanted: object) -> str:
    """Say what was found and what it should be, both cut to what fits a line."""
    return f"found {readable(repr(found), 90)}, expected {readable(repr(wanted), 90)}"


def close(found: float | None, wanted: float | None, tolerance: float) -> bool:
    """Compare two values that may be missing, absolutely near 0 and relatively elsewhere."""
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=tolerance, abs_tol=tolerance)

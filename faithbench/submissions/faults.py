"""Faults of a submission: each is one line that names file, field, problem and remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from faithbench.core.text import readable

MEASURE_AGAIN = "measure the submission again, and change nothing by hand"


@dataclass(frozen=True)
class Fault:
    """One check that failed; without file and field, it is the submission itself that is wrong."""

    file: str
    field: str
    problem: str
    remedy: str = MEASURE_AGAIN

    def __str__(self) -> str:
        """Return the fault as one line."""
        said = f"{self.problem}; {self.remedy}"
        return ": ".join(part for part in (self.file, self.field, said) if part)


def unequal_fields(
    file: str, part: str, facts: object, expected: Mapping[str, object]
) -> Iterator[Fault]:
    """Yield a fault for each field of a part of a record that is not as expected."""
    for name, value in expected.items():
        actual = getattr(facts, name)
        if actual != value:
            yield Fault(file, f"{part}.{name}" if part else name, mismatch(actual, value))


def mismatch(actual: object, expected: object) -> str:
    """Describe an actual and an expected value, both shortened to fit a line."""
    return f"found {readable(repr(actual), 90)}, expected {readable(repr(expected), 90)}"


def close(actual: float | None, expected: float | None, tolerance: float) -> bool:
    """Compare two values that may be missing, absolutely near 0 and relatively elsewhere."""
    if actual is None or expected is None:
        return actual is expected
    return math.isclose(actual, expected, rel_tol=tolerance, abs_tol=tolerance)

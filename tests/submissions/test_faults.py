"""Faults: one line each, and values compared as far as they can differ honestly."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from faithbench.submissions.faults import Fault, close, mismatch, unequal_fields


def test_a_fault_is_one_line_with_its_remedy() -> None:
    fault = Fault("a.json", "task.n", "found 5, expected 4", "remove it")
    assert str(fault) == "a.json: task.n: found 5, expected 4; remove it"
    assert str(Fault("a.json", "cost", "is odd")) == (
        "a.json: cost: is odd; measure the submission again, and change nothing by hand"
    )


def test_only_fields_that_differ_are_faults() -> None:
    part = SimpleNamespace(n=5, name="sst2", version=1)
    faults = [*unequal_fields("a.json", "task", part, {"n": 4, "name": "sst2", "version": 2})]
    assert [(fault.field, fault.problem) for fault in faults] == [
        ("task.n", "found 5, expected 4"),
        ("task.version", "found 1, expected 2"),
    ]
    (fault,) = unequal_fields("a.json", "", part, {"n": 4})
    assert fault.field == "n"


def test_long_and_hostile_values_are_cut_to_a_line() -> None:
    text = mismatch("\x1b[31m\n" + "x" * 500, "y" * 500)
    assert text.isprintable() and len(text) == len("found , expected ") + 2 * 90


@pytest.mark.parametrize(
    ("actual", "expected", "tolerance", "same"),
    [
        (None, None, 0.1, True),
        (None, 0.0, 0.1, False),
        (0.0, None, 0.1, False),
        (0.0, 5e-5, 1e-4, True),  # absolutely near 0
        (0.0, 2e-4, 1e-4, False),
        (100.0, 100.009, 1e-4, True),  # relatively elsewhere
        (100.0, 100.02, 1e-4, False),
        (float("nan"), float("nan"), 1.0, False),
    ],
)
def test_closeness(
    actual: float | None, expected: float | None, tolerance: float, same: bool
) -> None:
    assert close(actual, expected, tolerance) is same

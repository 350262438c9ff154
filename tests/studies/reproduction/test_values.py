"""What cells come to: means over seeds and examples by hand, and curves read off rows."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.studies.reproduction.values import (
    Measured,
    Missing,
    RecordRef,
    measured,
    of_seeds,
    row_values,
)
from tests.support.stores import change_rows, store

REF = RecordRef("records/a.json", "0" * 64)


def test_an_example_has_the_mean_of_the_seeds_that_have_a_value() -> None:
    first: dict[str, float | None] = {"a": 1.0, "b": None, "c": None, "d": 2.0}
    second: dict[str, float | None] = {"a": 3.0, "b": 5.0, "c": None}
    value = measured([first, second], 10.0, [REF])
    assert isinstance(value, Measured)
    assert value.values == {"a": 20.0, "b": 50.0, "d": 20.0}
    assert (value.mean, value.n, value.records) == (30.0, 3, (REF,))
    # Each seed's own mean, over its own examples: (1 + 2) / 2 and (3 + 5) / 2, times ten.
    assert value.by_seed == (15.0, 40.0)
    assert value.interval is not None and 20 <= value.interval[0] < 30 < value.interval[1] <= 50


def test_one_example_has_no_interval_and_none_has_no_value() -> None:
    value = measured([{"a": 2.0, "b": None}])
    assert isinstance(value, Measured) and (value.mean, value.interval, value.n) == (2.0, None, 1)
    assert measured([{"a": None}, {}]) == Missing("no example has a value")
    assert measured([]) == Missing("no example has a value")


def test_a_seed_without_a_value_is_no_seed() -> None:
    value = measured([{"a": 1.0}, {"a": None}, {"a": 2.0}])
    assert isinstance(value, Measured) and value.by_seed == (1.0, 2.0)


def test_numbers_of_seeds() -> None:
    value = of_seeds([0.25, 0.75], 100.0, [REF], n=40)
    assert (value.mean, value.by_seed, value.n) == (50.0, (25.0, 75.0), 40)
    assert value.values == {} and value.records == (REF,)
    assert value.interval == (25.0, 75.0), "two values: half of all draws are of one alone"
    one = of_seeds([2.5])
    assert (one.mean, one.interval, one.n, one.by_seed) == (2.5, None, 1, (2.5,))


@pytest.fixture
def stored(tmp_path: Path) -> StoredRecord:
    """Three examples, two of label 1; under two seeds, aopc is .1 lower and .1 higher."""
    numbers = (0.2, 0.4, None)
    path = store(tmp_path, "random-1", {"aopc": numbers, "lodds": (-1.0, -2.0, -3.0)})
    curve = tuple(0.5 - 0.05 * n for n in range(9))
    changes: dict[str, dict[str, object]] = {}
    for place, number in enumerate(numbers):
        seeds = (None, None) if number is None else (number - 0.1, number + 0.1)
        facts = {"by_seed": {"aopc": seeds}, "curve": curve, "probability": 0.5}
        changes[f"e{place}"] = facts | {"label": int(place > 0)}
    change_rows(path, changes)
    return StoredRecord(path, read(path))


def test_rows_have_a_value_per_seed(stored: StoredRecord) -> None:
    first, second = row_values(stored, "aopc", None)
    assert first == {"e0": pytest.approx(0.1), "e1": pytest.approx(0.3), "e2": None}
    assert second == {"e0": pytest.approx(0.3), "e1": pytest.approx(0.5), "e2": None}
    # A metric that is the same under all seeds has one column.
    assert row_values(stored, "lodds", None) == [{"e0": -1.0, "e1": -2.0, "e2": -3.0}]


def test_a_label_keeps_its_own_examples(stored: StoredRecord) -> None:
    assert row_values(stored, "lodds", 1) == [{"e1": -2.0, "e2": -3.0}]
    assert row_values(stored, "lodds", 0) == [{"e0": -1.0}]
    assert row_values(stored, "lodds", 5) == [{}]


def test_a_share_of_erased_tokens_is_read_off_the_curve(stored: StoredRecord) -> None:
    """At 10% the probability is .5, as before; at 30% it is .4, and at 90% .1."""
    assert row_values(stored, "aopc@10", 0) == [{"e0": 0.0}]
    assert row_values(stored, "aopc@30", 0) == [{"e0": pytest.approx(0.1)}]
    assert row_values(stored, "aopc@90", 0) == [{"e0": pytest.approx(0.4)}]
    assert row_values(stored, "lodds@30", 0) == [{"e0": pytest.approx(math.log(0.4 / 0.5))}]
    assert row_values(stored, "lodds@90", 0) == [{"e0": pytest.approx(math.log(0.1 / 0.5))}]


def test_a_probability_of_zero_is_the_smallest_that_rows_can_tell(stored: StoredRecord) -> None:
    change_rows(stored.path, {"e0": {"curve": (0.0,) * 9, "probability": 1.0}})
    again = StoredRecord(stored.path, read(stored.path))
    assert row_values(again, "lodds@50", 0) == [{"e0": pytest.approx(math.log(1e-9))}]


def test_the_mean_of_a_curve_is_the_metric(stored: StoredRecord) -> None:
    """AOPC is the mean of the falls over all shares, as the run has it."""
    falls = [row_values(stored, f"aopc@{k}", 0)[0]["e0"] for k in range(10, 100, 10)]
    assert sum(fall or 0.0 for fall in falls) / 9 == pytest.approx(0.2)

"""Kinds of metrics: what their functions are given, and which values are refused."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Case, Example
from faithbench.metrics.kinds import (
    CaseMetric,
    Measure,
    TableMetric,
    WordMetric,
    no_rows,
)
from faithbench.metrics.registry import METRICS, Facts, metric, metrics_by
from tests.support.cases import case_of, said

CASE = case_of([0.0, 0.0])
NOTHING = said([])
FACTS: Facts = {"family": "stability", "higher_is_better": True, "bounds": (0, 2)}


def made(value: float | None, low: float = 0.0, high: float = 1.0) -> CaseMetric:
    return CaseMetric(
        name="made-up",
        family="stability",
        higher_is_better=True,
        bounds=(low, high),
        summary="Be made up.",
        score=lambda *_: value,
    )


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, -1e-10, 1 + 1e-10, None])
def test_a_value_in_range_is_passed_on(value: float | None) -> None:
    assert made(value).value(CASE, NOTHING) == value


@pytest.mark.parametrize("value", [-0.001, 1.001, math.nan, math.inf, -math.inf])
def test_a_value_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(FaithbenchError, match=rf"made-up is {value}, outside its range \[0.0, 1"):
        made(value).value(CASE, NOTHING)


def test_no_number_is_refused_even_without_bounds() -> None:
    with pytest.raises(FaithbenchError, match="made-up is nan"):
        made(math.nan, -math.inf, math.inf).value(CASE, NOTHING)


def test_a_case_metric_is_a_function_with_facts() -> None:
    @metric("half", family="speed", higher_is_better=False, bounds=(0, 2))
    def half(case: Case, _outputs: object) -> float:
        """Halve the number of tokens,
        and be told so.

        And no more.
        """
        return case.n / 2

    (made,) = metrics_by(half)
    assert isinstance(made, CaseMetric)
    assert (made.name, made.family, made.higher_is_better) == ("half", "speed", False)
    assert (made.low, made.high, made.version, made.title) == (0, 2, 1, "")
    assert (made.summary, made.plan) == ("Halve the number of tokens, and be told so.", no_rows)
    assert made.in_rows and made.per_seed
    assert made.value(CASE, NOTHING) == 1
    assert half(CASE, None) == 1, "the function is left as it is"


def test_a_word_metric_is_mapped_over_examples_or_sentences() -> None:
    def length(words: list[int]) -> float | None:
        """Count what is there."""
        return len(words) or None

    (words,) = metrics_by(metric("count", kind="word", **FACTS)(length))
    both = metrics_by(metric("sentences", kind="word", unit="sentences", **FACTS)(length))

    def values(made: Any, **units: list[list[int]]) -> list[float | None]:
        assert isinstance(made, WordMetric)
        examples = [Example(f"e{number}", "", 0) for number in range(len(units[made.unit]))]
        return made.values(SimpleNamespace(units=units.__getitem__, examples=examples))

    assert values(words, words=[[1], []], sentences=[[1, 2]]) == [1, None]
    assert [made.name for made in both] == ["count", "sentences"], "one function, two metrics"
    assert values(both[1], words=[[1], []], sentences=[[1, 2]]) == [2]
    with pytest.raises(FaithbenchError, match="count is 3, outside its range"):
        values(words, words=[[1, 2, 3]])
    with pytest.raises(FaithbenchError, match="metric 'count' failed on e1: TypeError: object of"):
        values(words, words=[[1], 5])  # type: ignore[list-item]


def test_a_table_metric_has_a_value_for_each_example() -> None:
    @metric("count", kind="table", **FACTS)
    def count(table: Any) -> list[float | None]:
        """Count what is there."""
        return [len(table.words), None]

    (made,) = metrics_by(count)
    assert isinstance(made, TableMetric) and made.summary == "Count what is there."
    assert made.values(SimpleNamespace(words=[1.0, 2.0])) == [2, None]
    with pytest.raises(FaithbenchError, match="count is 3, outside its range"):
        made.values(SimpleNamespace(words=[1.0, 2.0, 3.0]))
    with pytest.raises(FaithbenchError, match="'count' gave 2 values for 1 examples; it must give"):
        made.values(SimpleNamespace(words=[1.0]))


def test_a_measure_is_in_rows_if_examples_have_one() -> None:
    def taken(value: float) -> float:
        """Be what the run says."""
        return value

    (record,) = metrics_by(metric("a", kind="measure", **FACTS)(taken))
    rows = metrics_by(metric("b", kind="measure", per_example=True, **FACTS)(taken))[-1]
    assert isinstance(record, Measure) and isinstance(rows, Measure)
    assert (record.in_rows, rows.in_rows) == (False, True)
    assert (record.per_seed, rows.per_seed) == (False, False)


def test_nothing_to_erase_has_no_value() -> None:
    """Metrics that ask about inputs have none; those that read the scores alone may."""
    empty = case_of([])
    plan = METRICS["aopc"].rows(empty)
    assert plan.shape == (0, 2)
    for name in ("aopc", "sufficiency", "tau_loo", "answer_recall_at_20"):
        assert METRICS[name].rows(empty).shape == (0, 2)
        assert METRICS[name].value(empty, NOTHING) is None
    assert made(0.5).value(empty, NOTHING) == 0.5

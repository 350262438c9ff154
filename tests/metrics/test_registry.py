"""Metrics by name: what is registered, how it is asked for, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faithbench import metrics
from faithbench.errors import FaithbenchError
from faithbench.metrics import METRICS, Metric, find_metrics, metric
from faithbench.types import Case

CASE = Case(np.zeros(2), np.array([0, 1]), 0, np.log([0.5, 0.5]))


def names(text: str) -> list[str]:
    return [found.name for found in find_metrics(text)]


def made(value: float | None, low: float = 0.0, high: float = 1.0) -> Metric:
    return Metric(
        "made-up", "stability", True, low, high, 1, "Be made up.", lambda _: None, lambda *_: value
    )


def test_facts_of_the_erasure_metrics() -> None:
    aopc, lodds = METRICS["aopc"], METRICS["lodds"]
    assert (aopc.family, aopc.higher_is_better, aopc.version) == ("faithfulness", True, 1)
    assert (aopc.low, aopc.high) == (-1, 1)
    assert (lodds.family, lodds.higher_is_better) == ("faithfulness", False)
    assert (lodds.low, lodds.high) == (-math.inf, math.inf)
    assert aopc.summary.startswith("Mean fall of the target's probability")
    assert aopc.plan is lodds.plan


def test_every_metric_is_filed_under_its_name() -> None:
    for name, found in METRICS.items():
        assert found.name == name
        assert found.low < found.high
        assert found.summary.endswith(".")


def test_found_by_name_in_the_order_asked() -> None:
    assert names("lodds,aopc") == ["lodds", "aopc"]
    assert names(" aopc , aopc") == ["aopc"]


def test_found_by_family_or_all() -> None:
    family = names("faithfulness")
    assert {"aopc", "lodds"} <= set(family)
    assert {METRICS[name].family for name in family} == {"faithfulness"}
    assert names("all") == list(METRICS)
    assert names("lodds,faithfulness")[0] == "lodds"
    assert sorted(names("lodds,faithfulness")) == sorted(family)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("aopcc", "no metric named 'aopcc'; did you mean 'aopc'?"),
        ("aopc,faithfullness", "named 'faithfullness'; did you mean 'faithfulness'?"),
    ],
)
def test_unknown_names_are_corrected(text: str, said: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        find_metrics(text)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["", "zzzz", "aopc,"])
def test_unknown_names_without_a_near_one(text: str) -> None:
    with pytest.raises(FaithbenchError, match=r"no metric named .*; known: .*aopc, .*lodds"):
        find_metrics(text)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0, -1e-10, 1 + 1e-10, None])
def test_a_value_in_range_is_passed_on(value: float | None) -> None:
    assert made(value).value(CASE, np.zeros((0, 2))) == value


@pytest.mark.parametrize("value", [-0.001, 1.001, math.nan, math.inf, -math.inf])
def test_a_value_out_of_range_is_refused(value: float) -> None:
    with pytest.raises(FaithbenchError, match=rf"made-up is {value}, outside its range \[0.0, 1"):
        made(value).value(CASE, np.zeros((0, 2)))


def test_no_number_is_refused_even_without_bounds() -> None:
    with pytest.raises(FaithbenchError, match="made-up is nan"):
        made(math.nan, -math.inf, math.inf).value(CASE, np.zeros((0, 2)))


def test_registering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", {})
    register = metric(
        "half", family="speed", higher_is_better=False, bounds=(0, 2), plan=lambda _: None
    )

    @register
    def half(case: Case, _answers: object) -> float:
        """Halve the number of tokens.

        And no more.
        """
        return case.n / 2

    found = metrics.METRICS["half"]
    assert (found.summary, found.version) == ("Halve the number of tokens.", 1)
    assert found.value(CASE, np.zeros((0, 2))) == 1
    assert half(CASE, None) == 1
    with pytest.raises(FaithbenchError, match="two metrics are named 'half'; rename one"):
        register(half)

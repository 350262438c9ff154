"""Metrics by name: what is registered, how it is asked for, and what is refused."""

from __future__ import annotations

import math

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Case
from faithbench.metrics import registry as metrics
from faithbench.metrics.registry import (
    FAMILIES,
    METRICS,
    CaseMetric,
    TableMetric,
    find_metrics,
    metric,
    no_rows,
    table_metric,
)
from tests.support.cases import case_of, said

CASE = case_of([0.0, 0.0])
NOTHING = said([])
TABLE = [
    "aopc",
    "lodds",
    "comprehensiveness",
    "sufficiency",
    "flip_fraction",
    "delta_log_odds",
    "delta_log_odds_neg",
    "agreement",
    "tau_loo",
    "fi_entropy",
    "answer_recall_at_20",
]


def names(text: str) -> list[str]:
    return [found.name for found in find_metrics(text)]


def made(value: float | None, low: float = 0.0, high: float = 1.0) -> CaseMetric:
    facts = ("made-up", "stability", True, low, high, 1, "Be made up.")
    return CaseMetric(*facts, plan=no_rows, score=lambda *_: value)


def test_facts_of_the_erasure_metrics() -> None:
    aopc, lodds = METRICS["aopc"], METRICS["lodds"]
    assert (aopc.family, aopc.higher_is_better, aopc.version) == ("faithfulness", True, 1)
    assert (aopc.low, aopc.high) == (-1, 1)
    assert (lodds.family, lodds.higher_is_better) == ("faithfulness", False)
    assert (lodds.low, lodds.high) == (-math.inf, math.inf)
    assert aopc.summary.startswith("Mean fall of the target's probability")
    assert aopc.plan is lodds.plan


@pytest.mark.parametrize(
    ("name", "up", "low", "high"),
    [
        ("comprehensiveness", True, -1, 1),
        ("sufficiency", False, -1, 1),
        ("flip_fraction", False, 0, 1),
        ("delta_log_odds", True, -27.63, 27.63),
        ("delta_log_odds_neg", False, -27.63, 27.63),
        ("agreement", True, 0, 1),
        ("tau_loo", True, -1, 1),
        ("fi_entropy", None, 0, 1),
        ("answer_recall_at_20", True, 0, 1),
        ("naopc", True, -math.inf, math.inf),
    ],
)
def test_facts_of_the_other_metrics(name: str, up: bool | None, low: float, high: float) -> None:
    found = METRICS[name]
    assert (found.family, found.higher_is_better) == ("faithfulness", up)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)
    assert found.needs_bounds == (name == "naopc")
    assert (found.enough is not None) == (name == "flip_fraction")


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
    assert family == TABLE
    assert names("all") == [name for family in FAMILIES for name in names(family)]
    assert names("lodds,faithfulness")[0] == "lodds"
    assert sorted(names("lodds,faithfulness")) == sorted(family)


def test_what_runs_on_request_is_named() -> None:
    """Bounds are dear, and released variants are for reproductions: neither is in `all`."""
    requested = [name for name, found in METRICS.items() if found.opt_in]
    assert requested == [
        "naopc",
        "iou_f1:variant=eraser",
        "aopc:variant=mask-lrp",
        "lodds:variant=mask-lrp",
        "aopc:variant=attcat",
        "flip_fraction:variant=saloss",
        "tau_loo:variant=jain-wallace",
        "delta_log_odds:variant=l2e",
        "iou_lexical:variant=l2e",
        "iou_labels:words=content",
        "iou_labels:words=annotated",
        "iou_labels:variant=l2e",
    ]
    assert set(requested) | set(names("all")) == set(METRICS)
    assert names("faithfulness,naopc") == [*TABLE, "naopc"]
    assert names("aopc:variant=mask-lrp, all")[:2] == ["aopc:variant=mask-lrp", "aopc"]


def test_a_minus_leaves_out() -> None:
    assert names("faithfulness,-tau_loo") == [name for name in TABLE if name != "tau_loo"]
    assert names("all,-faithfulness") == [name for name in names("all") if name not in TABLE]
    assert names("aopc,lodds,-lodds,lodds") == ["aopc", "lodds"]
    with pytest.raises(FaithbenchError, match="--metrics -aopc leaves nothing to compute"):
        find_metrics("-aopc")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all,-aopcc", "no metric named 'aopcc'; did you mean 'aopc'?"),
        ("aopcc", "no metric named 'aopcc'; did you mean 'aopc'?"),
        ("aopc,faithfullness", "named 'faithfullness'; did you mean 'faithfulness'?"),
    ],
)
def test_unknown_names_are_corrected(text: str, message: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        find_metrics(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["", "zzzz", "aopc,"])
def test_unknown_names_without_a_near_one(text: str) -> None:
    with pytest.raises(FaithbenchError, match=r"no metric named .*; known: .*aopc, .*lodds"):
        find_metrics(text)


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


def test_registering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", {})
    register = metric("half", family="speed", higher_is_better=False, bounds=(0, 2), plan=no_rows)

    @register
    def half(case: Case, _answers: object) -> float:
        """Halve the number of tokens.

        And no more.
        """
        return case.n / 2

    found = metrics.METRICS["half"]
    assert (found.summary, found.version) == ("Halve the number of tokens.", 1)
    assert found.value(CASE, NOTHING) == 1
    assert half(CASE, None) == 1
    with pytest.raises(FaithbenchError, match="two metrics are named 'half'; rename one"):
        register(half)


def test_nothing_to_erase_has_no_value() -> None:
    """Metrics that ask about inputs have none; those that read the scores alone may."""
    empty = case_of([])
    plan = METRICS["aopc"].rows(empty)
    assert plan.shape == (0, 2)
    for name in TABLE:
        assert METRICS[name].rows(empty).shape == (0, 2)
        assert METRICS[name].value(empty, NOTHING) is None
    assert made(0.5).value(empty, NOTHING) == 0.5


STABILITY = ["iou_semantic", "iou_lexical", "iou_labels", "seed_agreement", "max_sensitivity"]
PLAUSIBILITY = [
    "auprc",
    "token_f1",
    "token_precision",
    "token_recall",
    "iou_f1",
    "sentence_auprc",
    "sentence_f1",
    "saliency_accuracy",
    "tpr_drop",
]
SPEED = ["seconds", "peak_memory", "forwards", "backwards", "forward_equivalents"]


def test_the_other_families() -> None:
    """All of the protocol's three other tables, and sentence scores."""
    assert (names("stability"), names("plausibility")) == (STABILITY, PLAUSIBILITY)
    assert names("speed") == SPEED
    downs = ["max_sensitivity", *SPEED]
    for name in (*STABILITY, *PLAUSIBILITY, *SPEED):
        assert METRICS[name].higher_is_better is (name not in downs)


def test_all_is_what_a_task_has_the_needs_of() -> None:
    """Nothing there: erasure, neighbours and speed. A name or a family is taken as asked."""
    bare = [found.name for found in find_metrics("all", there=[])]
    assert bare == [*TABLE[:-1], *STABILITY[:3], "max_sensitivity", *SPEED]
    human = [found.name for found in find_metrics("all", there=["rationale"])]
    assert [name for name in human if name not in bare] == [
        name for name in PLAUSIBILITY if not name.startswith("sentence")
    ]
    every = [found.name for found in find_metrics("all", ["answers", "seeds"])]
    assert [n for n in every if n not in bare] == ["answer_recall_at_20", "seed_agreement"]
    assert [found.name for found in find_metrics("plausibility", there=[])] == PLAUSIBILITY


def test_registering_for_all_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "METRICS", {})
    register = table_metric("count", family="stability", higher_is_better=True, bounds=(0, 2))

    @register
    def count(table: list[float]) -> list[float | None]:
        """Count what is there."""
        return [len(table), None]

    found = metrics.METRICS["count"]
    assert isinstance(found, TableMetric) and found.summary == "Count what is there."
    assert found.values([1.0]) == [1, None]
    with pytest.raises(FaithbenchError, match="count is 3, outside its range"):
        found.values([1.0, 2.0, 3.0])

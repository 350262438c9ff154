"""Metrics by name: what is registered, how it is asked for, and what is refused."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.metrics.faithfulness import aopc
from faithbench.metrics.kinds import (
    FAMILIES,
    CaseMetric,
    InfluenceMetric,
    Measure,
    TableMetric,
    Trained,
    WordMetric,
    no_rows,
)
from faithbench.metrics.registry import (
    METRICS,
    Facts,
    case_metrics,
    find_metrics,
    is_headline,
    metric,
    needs_encoder,
    register,
    text_metrics,
    title_of,
    wanted,
)
from tests.support.cases import case_of, said

CASE = case_of([0.0, 0.0])
NOTHING = said([])
FACTS: Facts = {"family": "stability", "higher_is_better": True, "bounds": (0, 2)}
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
    assert isinstance(found, CaseMetric)
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


INFLUENCE = [
    "tau_ceiling",
    "tau_loo_share",
    "tau_gradient",
    "tau_gradient_share",
    "top_gradient",
    "support_auc",
    "tau_inner_gradient",
    "inside_inner_gradient",
    "tau_inner_loo",
    "inner_entropy",
    "own_share",
    "own_rank",
]


def test_what_runs_on_request_is_named() -> None:
    """Bounds and influence are dear, released variants are for reproductions: all need a name."""
    requested = [name for name, found in METRICS.items() if found.opt_in]
    assert requested == [
        "naopc",
        *INFLUENCE,
        "iou_f1:variant=eraser",
        "aopc:variant=mask-lrp",
        "lodds:variant=mask-lrp",
        "aopc:variant=attcat",
        "flip_fraction:variant=saloss",
        "tau_loo:variant=jain-wallace",
        "delta_log_odds:variant=l2e",
        "iou_semantic:variant=raw",
        "iou_lexical:variant=raw",
        "iou_lexical:variant=l2e",
        "iou_labels:variant=raw",
        "iou_labels:words=content",
        "iou_labels:words=annotated",
        "iou_labels:variant=l2e",
        "fresh_f1_topk",
        "fresh_f1_contiguous",
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


def nothing() -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("name", "kind", "facts", "message"),
    [
        ("x", "case", {"paln": no_rows}, "no fact of a case metric named 'paln'; did you mean 'pl"),
        ("x", "word", {"plan": no_rows}, "no fact of a word metric named 'plan'"),
        ("x", "case", {"summary": "S."}, "no fact of a case metric named 'summary'"),
        ("x", "cases", {}, "no kind of metric named 'cases'; did you mean 'case'?"),
        ("x", "case", {"family": "faith"}, "no family of metrics named 'faith'"),
        ("all", "case", {}, "a metric cannot be named 'all'"),
        ("speed", "case", {}, "a metric cannot be named 'speed'"),
        ("-x", "case", {}, "a metric cannot be named '-x'"),
        ("a,b", "case", {}, "a metric cannot be named 'a,b'"),
        ("a b", "case", {}, "a metric cannot be named 'a b'"),
        ("a@2", "case", {}, "a metric cannot be named 'a@2'"),
        ("", "case", {}, "a metric cannot be named ''"),
    ],
)
def test_what_is_no_metric_is_refused(name: str, kind: Any, facts: Any, message: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        metric(name, kind=kind, **{**FACTS, **facts})(nothing)
    assert message in str(caught.value)


def test_facts_that_are_always_given_are_named() -> None:
    with pytest.raises(FaithbenchError, match="'x' does not say its higher_is_better and bounds;"):
        metric("x", family="faithfulness")(nothing)  # type: ignore[call-arg]


def test_a_metric_says_what_it_means() -> None:
    with pytest.raises(FaithbenchError, match="metric 'x' has no docstring"):
        metric("x", **FACTS)(lambda case, outputs: 0.0)


def test_every_fact_of_a_kind_can_be_given() -> None:
    """The typed keywords of the decorator are the fields of the kinds, and no others."""
    given = {"name", "summary", "score"}
    kinds = (CaseMetric, WordMetric, TableMetric, InfluenceMetric, Measure, Trained)
    assert {field.name for kind in kinds for field in fields(kind)} - given == set(
        Facts.__annotations__
    )


def test_no_two_metrics_have_one_name() -> None:
    with pytest.raises(FaithbenchError, match="two metrics are named 'aopc'; rename one"):
        register([METRICS["aopc"]])


# Facts that others look up


def test_what_is_asked_for_is_found_by_its_function() -> None:
    assert wanted(aopc, find_metrics("lodds,aopc")) is METRICS["aopc"]
    assert wanted(aopc, find_metrics("lodds,aopc:variant=mask-lrp")) is None


def test_kinds_are_told_apart() -> None:
    """Each metric is of one kind."""
    kinds = {name: type(found).__name__ for name, found in METRICS.items()}
    assert {name for name, kind in kinds.items() if kind == "CaseMetric"} == {
        found.name for found in case_metrics(METRICS.values())
    }
    texts = {found.name for found in text_metrics(METRICS.values())}
    assert texts == {name for name, kind in kinds.items() if kind in ("WordMetric", "TableMetric")}
    measures = [name for name, kind in kinds.items() if kind in ("Measure", "Cost")]
    assert measures == [*SPEED, "tpr_drop", "max_sensitivity"]
    assert [name for name in measures if METRICS[name].in_rows] == ["max_sensitivity"]
    trained = [name for name, kind in kinds.items() if kind == "Trained"]
    assert trained == ["fresh_f1_topk", "fresh_f1_contiguous"]


def facts_true(fact: str) -> list[str]:
    return [name for name, found in METRICS.items() if getattr(found, fact, False)]


def test_facts_that_few_metrics_have() -> None:
    assert facts_true("keeps_curve") == ["aopc"]
    assert facts_true("needs_bounds") == ["naopc"]
    assert {METRICS[name].aspect: name for name in facts_true("ranked")} == {
        "comprehensiveness": "aopc", "sufficiency": "sufficiency", "sign": "delta_log_odds_neg",
    }  # fmt: skip
    assert METRICS["tau_loo"].aspect is None and METRICS["flip_fraction"].aspect is not None
    assert facts_true("headline") == [
        "forward_equivalents",
        "aopc",
        "sufficiency",
        "delta_log_odds_neg",
        "auprc",
        "token_f1",
        "iou_semantic",
    ]
    semantic = ["iou_semantic", "iou_labels", "iou_semantic:variant=raw"]
    semantic += ["iou_labels:variant=raw", "iou_labels:words=content"]
    semantic += ["iou_labels:words=annotated", "iou_labels:variant=l2e"]
    assert facts_true("needs_encoder") == semantic
    tolerances = {found.name: found.tolerance for found in case_metrics(METRICS.values())}
    assert {name for name, value in tolerances.items() if value != 1e-4} == {
        "tau_loo",
        "tau_loo:variant=jain-wallace",
        "tau_loo_share",
    }
    assert tolerances["tau_loo"] == 0.05
    once = [name for name, found in METRICS.items() if found.in_rows and not found.per_seed]
    assert once == ["seed_agreement", "max_sensitivity"]


def test_facts_by_name() -> None:
    """A record may hold metrics that are not known here: they go by their names."""
    assert (title_of("aopc"), title_of("lodds")) == ("AOPC", "LOdds")
    assert title_of("tau_loo") == "tau_loo" and title_of("theirs") == "theirs"
    assert needs_encoder("iou_semantic") and not needs_encoder("iou_lexical")
    assert not needs_encoder("theirs") and not is_headline("theirs")
    assert is_headline("auprc") and not is_headline("lodds")


# Families


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

"""Summaries of rows, worked out by hand."""

from __future__ import annotations

import pytest

from faithbench.metrics.registry import METRICS
from faithbench.records.schema import CostFacts
from faithbench.records.summary import (
    accuracy_of,
    cost_facts,
    largest_gap_of,
    metric_facts,
    tpr_drop_of,
)
from tests.support.builders import row


def test_a_metric_is_summarised_with_its_facts() -> None:
    rows = [row(str(i), values={"aopc": value}) for i, value in enumerate([0.25, None, 0.75])]
    facts = metric_facts(METRICS["aopc"], rows, proxy=True)
    assert (facts.mean, facts.n, facts.skipped) == (0.5, 2, 1)
    assert facts.ci95 is not None and facts.ci95[0] <= 0.5 <= facts.ci95[1]
    assert (facts.version, facts.family, facts.higher_is_better) == (1, "faithfulness", True)
    assert not facts.proxy, "only agreement with rationales can be with a proxy"


def test_a_metric_without_a_value_has_no_mean() -> None:
    facts = metric_facts(METRICS["aopc"], [row(values={"aopc": None})], proxy=False)
    assert (facts.mean, facts.ci95, facts.n, facts.skipped) == (None, None, 0, 1)


@pytest.mark.parametrize("proxy", [True, False])
def test_agreement_with_a_proxy_is_marked(proxy: bool) -> None:
    facts = metric_facts(METRICS["auprc"], [row(values={"auprc": 1.0})], proxy=proxy)
    assert facts.proxy == proxy


def test_costs_are_added_up_for_metrics_and_averaged_for_the_explainer() -> None:
    rows = [
        row("a", rows_asked=9, distinct_rows=7, forwards=1, backwards=0),
        row("b", rows_asked=1, distinct_rows=1, forwards=2, backwards=1),
        row("c", rows_asked=0, distinct_rows=0, forwards=2, backwards=0),
    ]
    assert cost_facts(rows) == CostFacts(
        rows_asked=10,
        distinct_rows=8,
        forwards_per_example=1.666667,
        backwards_per_example=0.333333,
        # A backward pass counts twice: 5/3 + 2/3, from the unrounded means.
        forward_equivalents_per_example=2.333333,
    )


def test_costs_of_precomputed_scores_are_not_known() -> None:
    rows = [row("a", forwards=None, backwards=None), row("b", forwards=2, backwards=None)]
    cost = cost_facts(rows)
    assert (cost.rows_asked, cost.distinct_rows) == (18, 14)
    assert cost.forwards_per_example is None and cost.backwards_per_example is None
    assert cost.forward_equivalents_per_example is None


def test_passes_of_another_network_are_part_of_the_whole() -> None:
    rows = [
        row("a", forwards=1, backwards=0, elsewhere=0.125),
        row("b", forwards=0, backwards=1, elsewhere=0.0),
    ]
    cost = cost_facts(rows)
    assert (cost.forwards_per_example, cost.backwards_per_example) == (0.5, 0.5)
    assert cost.elsewhere_per_example == 0.0625
    assert cost.forward_equivalents_per_example == 1.5625
    assert cost_facts(rows[1:]).elsewhere_per_example is None


def test_accuracy_is_the_share_of_right_examples() -> None:
    assert accuracy_of([row(right=True), row(right=False), row(right=True)]) == 0.666667


def test_the_drop_is_a_part_of_the_true_positive_rate() -> None:
    rows = [
        row(right=True, right_without_rationale=True),
        row(right=True, right_without_rationale=False),
        row(right=True, right_without_rationale=False),
        row(right=False, right_without_rationale=False),
        row(right=True),  # has no rationale
    ]
    # Right on three texts of four, then on one: two thirds are lost.
    assert tpr_drop_of(rows) == 0.666666667
    assert tpr_drop_of(rows[3:]) is None
    assert tpr_drop_of([]) is None


def test_the_largest_gap_has_no_sign() -> None:
    assert largest_gap_of([row(gap=0.25), row(gap=-0.5), row()]) == 0.5
    assert largest_gap_of([row()]) is None

"""Comparisons as values: which metrics, which is best, and on which examples they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.comparison import (
    chosen_metrics,
    compare,
    metric_names,
    most_different,
)
from faithbench.records.entrants import find_entrants
from faithbench.records.schema import MetricFacts
from tests.support.builders import row
from tests.support.records import METRIC
from tests.support.stores import Values, store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
ZERO = [0.0] * 7


@pytest.fixture
def results(tmp_path: Path) -> Path:
    store(tmp_path, "lime-11111111", {"aopc": UP, "lodds": UP, "agreement": [1.0] * 7})
    store(tmp_path, "random-22222222", {"aopc": ZERO, "lodds": UP, "agreement": [1.0, *ZERO[1:]]})
    return tmp_path


def facts(higher: bool | None) -> MetricFacts:
    return MetricFacts.model_validate({**METRIC, "higher_is_better": higher, "ci95": (0.0, 0.5)})


def complaint(wanted: list[str], results: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        chosen_metrics(wanted, find_entrants(["lime", "random"], "sst2", results))
    return str(caught.value)


def test_intervals_are_those_of_the_records(results: Path) -> None:
    lime, random = find_entrants(["lime", "random"], "sst2", results)
    ids = [row.id for row in lime.records[0].rows]
    table = {e.label: e.values("aopc", ids) for e in (lime, random)}
    comparison = compare("aopc", lime.metrics["aopc"], table)
    mean, interval, *_ = comparison.summaries["lime"]
    assert (mean, interval) == (lime.metrics["aopc"].mean, lime.metrics["aopc"].ci95)
    assert comparison.metric == "aopc" and comparison.facts == lime.metrics["aopc"]


def test_the_direction_decides_which_is_best() -> None:
    table: Values = {"lime": UP, "random": ZERO}
    assert compare("x", facts(True), table).tournament.best == "lime"
    assert compare("x", facts(False), table).tournament.best == "random"
    assert compare("x", facts(None), table).tournament.best is None


def test_missing_values_are_counted() -> None:
    table: Values = {"lime": [0.5, None, 0.25], "random": [None, None, None]}
    summaries = compare("x", facts(True), table).summaries
    mean, _, n, skipped = summaries["lime"]
    assert (mean, n, skipped) == (0.375, 2, 1)
    assert summaries["random"] == (None, None, 0, 3)


def test_examples_are_ordered_by_their_spread() -> None:
    rows = [row(f"e{i}") for i in range(5)]
    table: Values = {
        "a": [0.0, 0.5, None, 1.0, 0.3],
        "b": [0.1, 0.5, 0.0, 0.0, None],
        "c": [-0.3, 0.5, None, 0.2, 0.5],
    }
    differences = most_different(table, rows)
    # Equal values and single ones are no differences.
    assert [(d.id, d.spread) for d in differences] == [("e3", 1.0), ("e0", 0.4), ("e4", 0.2)]
    assert differences[2].values == {"a": 0.3, "c": 0.5}
    assert differences[0].tokens == rows[3].tokens
    assert [d.id for d in most_different(table, rows, count=1)] == ["e3"]


def test_equal_spreads_keep_the_order_of_the_rows() -> None:
    rows = [row("z"), row("a")]
    # 0.3 - 0.1 and 0.4 - 0.2 differ in their last bit.
    assert 0.3 - 0.1 < 0.4 - 0.2
    differences = most_different({"x": [0.1, 0.2], "y": [0.3, 0.4]}, rows)
    assert [d.id for d in differences] == ["z", "a"]


def test_names_families_and_all_choose_metrics(results: Path) -> None:
    entrants = find_entrants(["lime", "random"], "sst2", results)
    assert metric_names(entrants) == ["aopc", "lodds", "agreement"]
    assert chosen_metrics(["lodds", "faithfulness"], entrants) == ["lodds", "aopc", "agreement"]
    assert chosen_metrics(["all"], entrants) == ["aopc", "lodds", "agreement"]


def test_all_leaves_out_metrics_without_a_value(tmp_path: Path) -> None:
    for stem in ("lime-11111111", "random-22222222"):
        store(tmp_path, stem, {"aopc": UP, "lodds": [None] * 7})
    entrants = find_entrants(["lime", "random"], "sst2", tmp_path)
    assert chosen_metrics(["all"], entrants) == ["aopc"]
    assert chosen_metrics(["lodds"], entrants) == ["lodds"]


def test_misspelt_and_unmeasured_metrics_are_told_apart(results: Path) -> None:
    assert complaint(["aocp"], results) == (
        "no metric in these records named 'aocp'; did you mean 'aopc'?"
    )
    assert complaint(["naopc"], results) == (
        "metric 'naopc' is in none of these records; run the explainers again with --metrics naopc"
    )


def test_a_metric_must_be_in_every_record(results: Path) -> None:
    path = store(results, "random-22222222", {"lodds": UP})
    assert complaint(["aopc"], results) == (
        f"metric 'aopc' is not in the record of random ({path}); run it again with --metrics aopc"
    )
    store(results, "random-22222222", {"fi_entropy": UP})
    assert complaint(["all"], results).startswith(
        "no metric of all has a value in all of these records; run the explainers again with the "
        "same --metrics (there are aopc, "
    )


def test_versions_are_not_mixed(results: Path) -> None:
    store(results, "random-22222222", {"aopc": UP, "lodds": UP}, version=2)
    assert complaint(["all"], results) == (
        "metric 'aopc' has several versions here (1 of lime, 2 of random), which are never mixed; "
        "run them again together, or choose other metrics with --metric"
    )


def test_versions_are_not_mixed_within_an_explainer(results: Path) -> None:
    store(results, "random-33333333", {"aopc": UP}, version=2, seeds=(1,))
    store(results, "random-44444444", {"aopc": UP}, seeds=(2,))
    assert "several versions here (1 of lime, 1 of random, 2 of random)" in complaint(
        ["aopc"], results
    )


def test_neighbours_of_two_encoders_are_not_mixed(tmp_path: Path) -> None:
    values = {"aopc": UP, "iou_semantic": UP}
    store(tmp_path, "lime-11111111", values, protocol={"encoder": "small"})
    store(tmp_path, "random-22222222", values, protocol={"encoder": "large"})
    assert complaint(["all"], tmp_path) == (
        "metric 'iou_semantic' has several encoders here (small of lime, large of random), which "
        "are never mixed; run them again together, or choose other metrics with --metric"
    )
    entrants = find_entrants(["lime", "random"], "sst2", tmp_path)
    assert chosen_metrics(["aopc"], entrants) == ["aopc"]

"""A small version of benchmarks/aspects.py: correlations by hand, and a planted word."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from faithbench.metrics.registry import METRICS
from faithbench.testing.planted import WORDS
from tests.support.benchmarks import load_benchmark
from tests.support.stores import store

NONE = Path("no-such-folder")


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return load_benchmark("aspects")


@pytest.fixture
def table(study: ModuleType, tmp_path: Path) -> Any:
    """Four methods and a control on two examples; by AOPC they stand in the order given."""
    sufficiency = {"alti": 0.1, "gae": 0.3, "lrp": 0.2, "rollout": 0.4, "random": 0.0}
    for index, (name, own) in enumerate(sufficiency.items()):
        aopc = [0.5 - index / 10, 0.4 - index / 10]
        # A missing value of the sign aspect counts as 0 in the ranking.
        values = {"aopc": aopc, "sufficiency": [own, own], "delta_log_odds_neg": [index, None]}
        store(tmp_path, f"{name}-11111111", values, task={"source": "folder"})
    (compared,) = study.compared_tables(tmp_path, NONE)
    return compared


def test_signs_are_turned_so_that_better_agrees_with_better(study: ModuleType, table: Any) -> None:
    assert table.means("sufficiency") == {"alti": -0.1, "gae": -0.3, "lrp": -0.2, "rollout": -0.4}
    # Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 * 2 / (4 * 15).
    assert study.rho(table.means("aopc"), table.means("sufficiency")) == pytest.approx(0.8)
    # The control is last by AOPC and first by sufficiency: 1 - 6 * (1 + 4 + 1 + 16) / 120.
    with_controls = study.rho(table.means("aopc", True), table.means("sufficiency", True))
    assert with_controls == pytest.approx(-0.1)
    assert table.means("delta_log_odds_neg")["rollout"] == -1.5
    assert study.rho(table.means("aopc"), table.means("delta_log_odds_neg")) == pytest.approx(1)


def test_examples_have_correlations_of_their_own(study: ModuleType) -> None:
    aopc = {"a": np.array([3.0, 1.0, 1.0]), "b": np.array([2.0, 2.0, 2.0]),
            "c": np.array([1.0, 3.0, 3.0]), "d": np.array([0.0, 9.0, 4.0])}  # fmt: skip
    other = {"a": np.array([3.0, 3.0, np.nan]), "b": np.array([2.0, 2.0, 5.0]),
             "c": np.array([1.0, 1.0, 5.0]), "d": np.array([9.0, 9.0, 5.0])}  # fmt: skip
    compared = study.Compared("one", frozenset({"d"}), {"aopc": aopc, "tau_loo": other})
    # The first example agrees, the second is turned round, the third has no order.
    assert study.example_rho(compared, "tau_loo") == pytest.approx(0)
    assert study.example_rho(compared, "sufficiency") is None


def test_too_few_explainers_or_no_order_have_no_correlation(study: ModuleType) -> None:
    assert study.rho({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert study.rho({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 1, "c": 1}) is None


def test_the_section_names_what_is_one_measurement(study: ModuleType, table: Any) -> None:
    body = study.published_body([table])
    assert "2 metrics order explainers nearly as AOPC does, with a median of 0.80 to 1.00" in body
    line = next(line for line in body.splitlines() if line.startswith("| sufficiency "))
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert cells == ["sufficiency", "sufficiency", "0.80", "-0.10", "0.80", "0.80"]
    metrics = study.directed_metrics()
    assert METRICS["fi_entropy"] not in metrics and METRICS["tau_loo"] in metrics


def test_a_planted_word_is_found_whatever_tau_says(study: ModuleType) -> None:
    data = study.planted_data(8)
    for example in data.examples:
        assert sum(word in WORDS for word in example.text.split()) == 1
        assert WORDS[example.label] in example.text.split()
    found = study.verdicts(
        [study.planted_model(steps=60)], data, "occlusion,gradient,attn-lrp,random"
    )
    by_label = {verdict.label: verdict for verdict in found}
    methods = [verdict for verdict in found if verdict.label != "random"]
    assert all(verdict.is_finder for verdict in methods)
    assert by_label["random"].first < 0.5 and not by_label["random"].is_finder
    # AOPC is the same for all who find the word; tau_loo is 1 for the one that it copies.
    assert np.ptp([verdict.means["aopc"][0] for verdict in methods]) < 0.01
    assert by_label["occlusion"].means["tau_loo"] == [pytest.approx(1.0, abs=0.01)]
    assert by_label["gradient"].means["tau_loo"][0] < 0.6
    body = study.planted_body(found, [len(e.text.split()) for e in data.examples])
    assert "3 of 3 explainers put the word first on every text" in body


def test_the_word_alone_is_worth_its_pairs(study: ModuleType) -> None:
    # Of the three pairs of three words, two hold the first; the third is right half of the time.
    assert study.chance_tau([3]) == pytest.approx(2 / 3)
    assert study.chance_tau([4, 10]) == pytest.approx((0.5 + 0.2) / 2)

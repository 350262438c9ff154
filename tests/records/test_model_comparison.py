"""Models compared by the same explainers: pairing, seeds of one side, filters and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.model_comparison import (
    compare_models,
    examples_of,
    find_models,
    recorded_models,
    shared_explainers,
)
from tests.support.stores import change_rows, store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
DOWN = [value - 0.1 - value / 10 for value in UP]


def kept(folder: Path, name: str, model: str, values: list[float], **facts: Any) -> Path:
    told = {"name": model, "weights_sha256": model[0] * 64}
    return store(folder / model, f"{name}-11111111", {"aopc": values}, model=told, **facts)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for name in ("lime", "random"):
        kept(tmp_path, name, "plain", UP)
    kept(tmp_path, "lime", "trained", DOWN)
    kept(tmp_path, "random", "trained", UP)
    return tmp_path


def test_explainers_are_tested_against_themselves(results: Path) -> None:
    """Lime falls on all seven examples: p = 2 / 128; random does not move at all."""
    first, second = find_models(["plain", "trained"], "sst2", results)
    assert shared_explainers([first, second]) == ["lime", "random"]
    ids = examples_of([first, second])
    lime, random = compare_models(first, second, "aopc", ["lime", "random"], ids)
    assert (lime.explainer, lime.n) == ("lime", 7)
    assert lime.first == pytest.approx(0.4) and lime.second == pytest.approx(0.26)
    assert lime.signed_rank.p == lime.adjusted == pytest.approx(2 / 128)
    assert lime.rank_sum.p is not None and lime.rank_sum.p > 0.1
    assert random.signed_rank.p is None and random.adjusted is None


def test_seeds_of_one_side_are_averaged_by_example(results: Path) -> None:
    kept(results, "lime", "seed1", [0.0] * 7)
    first, second = find_models(["plain,seed1", "trained"], "sst2", results)
    assert list(first.by_explainer) == ["lime"], "random has no record of the second seed"
    assert first.values("lime", "aopc", ["e0", "e6"]) == [0.05, 0.35]
    (lime,) = compare_models(first, second, "aopc", ["lime"], examples_of([first, second]))
    assert lime.first == pytest.approx(0.2)


def test_only_examples_that_are_right_or_of_one_class(results: Path) -> None:
    for model in ("plain", "trained"):
        labels = {f"e{n}": {"label": n % 2, "right": True} for n in range(7)}
        change_rows(results / model / "lime-11111111.json", labels)
    change_rows(results / "trained" / "lime-11111111.json", {"e2": {"right": False}})
    sides = find_models(["plain", "trained"], "sst2", results)
    assert examples_of(sides, right=True) == ["e0", "e1", "e3", "e4", "e5", "e6"]
    assert examples_of(sides, label=1) == ["e1", "e3", "e5"]
    assert examples_of(sides, right=True, label=0) == ["e0", "e4", "e6"]


def test_models_with_a_record_of_a_task(results: Path) -> None:
    """Records of other tasks and those in hidden folders do not count."""
    kept(results, "lime", "elsewhere", UP, task={"name": "agnews"})
    kept(results / ".partial", "lime", "unfinished", UP)
    assert recorded_models(results, "sst2") == {"plain", "trained"}
    assert recorded_models(results, "agnews") == {"elsewhere"}
    assert recorded_models(results / "missing", "sst2") == set()


def test_what_cannot_be_compared_is_said(results: Path) -> None:
    with pytest.raises(FaithbenchError, match="no model in these records named 'traind'; did you"):
        find_models(["plain", "traind"], "sst2", results)
    kept(results, "lime", "other", UP, protocol={"operator": "delete"})
    with pytest.raises(FaithbenchError, match="differ in operator"):
        find_models(["plain", "other"], "sst2", results)
    kept(results / "more", "lime", "plain", UP)
    with pytest.raises(FaithbenchError, match="lime has two records of model 'plain'"):
        find_models(["plain", "trained"], "sst2", results)


def test_settings_tell_explainers_of_one_name_apart(tmp_path: Path) -> None:
    for model in ("plain", "trained"):
        for samples in (8, 64):
            folder = tmp_path / str(samples)
            kept(folder, "lime", model, UP, settings={"samples": samples, "width": 1})
    sides = find_models(["plain", "trained"], "sst2", tmp_path)
    assert shared_explainers(sides) == ["lime:samples=64", "lime:samples=8"]

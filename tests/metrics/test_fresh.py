"""Macro-F1 as a mean of values, one per example."""

from __future__ import annotations

import numpy as np
import pytest

from faithbench.data.kinds.classification import class_scores
from faithbench.metrics.fresh import macro_f1_values
from faithbench.metrics.kinds import Trained
from faithbench.metrics.registry import METRICS, is_tested_by_mean


@pytest.mark.parametrize(("classes", "n"), [(2, 7), (2, 200), (3, 50), (4, 5)])
def test_the_mean_of_the_values_is_macro_f1(classes: int, n: int) -> None:
    """Also where a class is neither there nor predicted, as of 5 examples in 4 classes."""
    draw = np.random.default_rng(n)
    gold, predicted = draw.integers(0, classes, (2, n)).tolist()
    expected = class_scores(predicted, gold, classes)["macro_f1"]
    assert np.mean(macro_f1_values(predicted, gold, classes)) == pytest.approx(expected, abs=1e-12)


def test_balanced_classes_give_ones_and_zeros() -> None:
    """Three of four are right in each class: F1 is .75, and an example counts as right or wrong."""
    gold, predicted = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 0]
    assert macro_f1_values(predicted, gold, 2) == pytest.approx([1, 1, 1, 0, 1, 1, 1, 0])


def test_the_values_are_the_derivative_by_an_examples_weight() -> None:
    """Repeating one of many examples moves macro-F1 by (value - F1) / n."""
    draw = np.random.default_rng(0)
    gold = draw.choice(3, 3000, p=[0.7, 0.2, 0.1])
    predicted = np.where(draw.random(3000) < 0.6, gold, draw.integers(0, 3, 3000))
    before = class_scores(predicted.tolist(), gold.tolist(), 3)["macro_f1"]
    values = macro_f1_values(predicted.tolist(), gold.tolist(), 3)
    for example in range(20):
        said, there = np.append(predicted, predicted[example]), np.append(gold, gold[example])
        after = class_scores(said.tolist(), there.tolist(), 3)["macro_f1"]
        moved = (after - before) * 3000
        assert values[example] - before == pytest.approx(moved, rel=0.01, abs=1e-3)


def test_both_metrics_say_the_command_that_makes_them() -> None:
    for select in ("topk", "contiguous"):
        found = METRICS[f"fresh_f1_{select}"]
        assert isinstance(found, Trained) and found.command.endswith(f"--select {select}")
        assert found.opt_in and found.per_seed and is_tested_by_mean(found.name)
        assert found.score([0, 1], [0, 1], 2) == [1, 1]
    assert not is_tested_by_mean("aopc")

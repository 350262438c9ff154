"""Owen values by enumeration of orders, within budgets, and without the shap library."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.partition import PartitionShap, halves
from faithbench.models.session import Session
from tests.explainers.test_perturbation import additive_model
from tests.explainers.test_surrogate import LONG, drop_of_all, game


def mean_marginals(n: int, value: Callable[[np.ndarray], float], orders: Any) -> np.ndarray:
    """Return what each token adds when tokens arrive one by one, mean over the orders."""
    orders = list(orders)
    total = np.zeros(n)
    for order in orders:
        mask, before = np.zeros(n, dtype=bool), value(np.zeros(n))
        for token in order:
            mask[token] = True
            total[token] += value(mask) - before
            before = value(mask)
    return total / len(orders)


def tree_orders(start: int, stop: int) -> list[list[int]]:
    """List the orders in which tokens can arrive span by span, for the balanced tree."""
    if stop - start == 1:
        return [[start]]
    middle = (start + stop + 1) // 2
    pairs = itertools.product(tree_orders(start, middle), tree_orders(middle, stop))
    return [order for left, right in pairs for order in (left + right, right + left)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8])
def test_partition_shap_gives_owen_values(n: int, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert", 3)
    batch = batch_of(model, [" ".join(LONG.split()[:n])], [1])
    expected = mean_marginals(n, game(model, batch), tree_orders(0, n))
    session = Session(model)
    before = session.meter.total
    found = PartitionShap()(session, batch)[0, 1:-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    rows = {1: 2, 2: 4, 4: 12, 8: 44}
    if n in rows:
        assert session.meter.since(before).forwards == rows[n]


def test_partition_shap_is_complete_within_any_budget(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good " + LONG, "good film"], [1, 0])
    expected = [drop_of_all(model, batch, row) for row in range(2)]
    for evaluations in (4, 16, 60):
        session = Session(model)
        before = session.meter.total
        found = PartitionShap(evaluations)(session, batch)
        np.testing.assert_allclose(found.sum(dim=1), expected, rtol=0, atol=1e-12)
        assert session.meter.since(before).forwards <= evaluations + 4
    # Four rows tell the halves of twelve tokens apart, and nothing within them.
    coarse = PartitionShap(4)(session, batch)[0, 1:13]
    np.testing.assert_allclose(coarse[:6], coarse[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(coarse[6:], coarse[11], rtol=0, atol=1e-12)
    assert abs(coarse[0] - coarse[6]) > 1e-4


def test_the_global_seed_is_neither_read_nor_moved(tokenizer: Any, batch_of: Any) -> None:
    """shap breaks ties by numpy's global generator; here there are sixteen equal spans."""
    model = additive_model(tokenizer, {"good": 0.03, "film": 0.01})
    batch = batch_of(model, ["good good film film " * 4])
    np.random.seed(1)
    expected = np.random.random()
    np.random.seed(1)
    found = PartitionShap(20)(Session(model), batch)
    assert np.random.random() == expected
    assert torch.equal(PartitionShap(20)(Session(model), batch), found)


def test_the_tree_is_balanced() -> None:
    assert halves(2).tolist() == [[0, 1, 2, 2]]
    assert halves(5)[:, [0, 1, 3]].tolist() == [[0, 1, 2], [5, 2, 3], [3, 4, 2], [6, 7, 5]]


def test_without_shap(tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match=r"pip install 'faithbench\[shap\]'"):
        PartitionShap()(Session(model), batch_of(model, ["good film"]))

"""Maximum flow: graphs solved by hand, and the smallest cut of random ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from faithbench.flow import UNITS, layered_graph, max_flows


def test_two_layers_by_hand() -> None:
    """Each middle node passes the lesser of what it gets and what it may give."""
    lower = np.array([[0.5, 0.5], [0.25, 0.75]])
    upper = np.array([[0.6, 0.4], [0.1, 0.9]])
    # To 0: min(.6, .5) + min(.4, .25); to 1: min(.6, .5) + min(.4, .75).
    np.testing.assert_allclose(max_flows([lower, upper], 0), [0.75, 0.9], atol=1e-8)
    np.testing.assert_allclose(max_flows([lower, upper], 1), [0.35, 0.85], atol=1e-8)


def test_one_layer_is_its_row() -> None:
    layer = np.array([[0.5, 0.2, 0.3], [1, 0, 0], [0, 0.75, 0.25]])
    for row in range(3):
        np.testing.assert_allclose(max_flows([layer], row), layer[row], atol=1e-9)


def test_the_identity_lets_all_through() -> None:
    flows = max_flows([np.eye(3)] * 4, 1)
    assert flows.tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", range(5))
def test_flow_is_the_smallest_cut(seed: int) -> None:
    random = np.random.default_rng(seed)
    layers = [random.random((3, 3)) ** 3 for _ in range(3)]
    layers = [layer / layer.sum(axis=1, keepdims=True) for layer in layers]
    flows = max_flows(layers, 2)
    for sink in range(3):
        assert flows[sink] == pytest.approx(smallest_cut(layers, 2, sink), abs=1e-7)


def test_the_graph_counts_in_integers() -> None:
    graph = layered_graph([np.array([[0.5, 0.5], [0, 1]])])
    assert graph.dtype == np.int32 and graph.shape == (4, 4)
    assert graph.toarray()[2:, :2].tolist() == [[UNITS // 2, UNITS // 2], [0, UNITS]]


def smallest_cut(layers: list[np.ndarray], top: int, sink: int) -> float:
    """Try every side of the cut for all middle nodes; the other ends lie where they cut nothing."""
    nodes, levels = len(layers[0]), len(layers) - 1
    best = np.inf
    for sides in product([False, True], repeat=nodes * levels):
        middle = np.array(sides).reshape(levels, nodes)
        above = np.vstack([np.arange(nodes) != sink, middle, np.arange(nodes) == top])
        cut = sum(
            layer[np.ix_(above[level + 1], ~above[level])].sum()
            for level, layer in enumerate(layers)
        )
        best = min(best, cut)
    return best

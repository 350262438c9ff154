"""Attention flow: against published code, at the token that is read, and within its limit."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.attention_flow import UNITS, AttentionFlow, layered_graph, max_flows
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.session import Session
from tests.explainers.test_decomposition import golden_batch, golden_model, stored
from tests.support.architectures import ARCHITECTURES

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("name", ["s0_len3", "s1_len8", "s2_len12"])
def test_reference_values(architecture: str, name: str, tokenizer: Any) -> None:
    """The reference divides rows by their sums."""
    model = golden_model(architecture, tokenizer)
    batch = golden_batch(architecture, name)
    expected = stored()[f"{architecture}/{name}/flow_matrix"]
    found = AttentionFlow()(Session(model), batch)[0].numpy()
    np.testing.assert_allclose(found / found.sum(), expected[0], rtol=1e-7)
    layers = [a[0].mean(0).numpy() for a in run_capture(model.eager(), batch).attentions]
    layers = [(layer + np.eye(len(layer))) / 2 for layer in layers]
    rows = np.stack([max_flows(layers, top) for top in range(len(expected))])
    np.testing.assert_allclose(rows / rows.sum(axis=1, keepdims=True), expected, rtol=1e-7)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_gives_what_single_examples_give(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    found = AttentionFlow()(Session(model), batch)
    assert found.isfinite().all()
    for row, text in enumerate(TEXTS):
        alone = AttentionFlow()(Session(model), batch_of(model, [text]))[0]
        torch.testing.assert_close(found[row, : len(alone)], alone, atol=1e-7, rtol=0)
        assert not found[row, len(alone) :].any()
        assert (alone > 0).all() and (alone <= 1 + 1e-7).all()


def test_flow_starts_where_the_classifier_reads(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("gpt2")
    batch = batch_of(model, [TEXTS[2]])
    layers = [a[0].mean(0).numpy() for a in run_capture(model.eager(), batch).attentions]
    layers = [(layer + np.eye(len(layer))) / 2 for layer in layers]
    found = AttentionFlow()(Session(model), batch)[0].numpy()
    np.testing.assert_allclose(found, max_flows(layers, len(layers[0]) - 1), atol=1e-7)


def test_long_inputs_are_refused_before_any_work(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    session = Session(model)
    before = session.meter.total
    with pytest.raises(FaithbenchError, match="15 tokens and takes at most 14"):
        AttentionFlow(max_tokens=14)(session, batch_of(model, TEXTS))
    assert session.meter.total == before
    assert AttentionFlow(max_tokens=15)(session, batch_of(model, TEXTS)).shape == (3, 15)
    assert session.meter.since(before).forwards == 3


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

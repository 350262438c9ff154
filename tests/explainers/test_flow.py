"""Attention flow: against published code, at the token that is read, and within its limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explainers import ARCHITECTURES
from explainers.test_decomposition import golden_batch, golden_model, stored
from faithbench.capture import run_capture
from faithbench.errors import FaithbenchError
from faithbench.explainers.flow import AttentionFlow
from faithbench.flow import max_flows

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("name", ["s0_len3", "s1_len8", "s2_len12"])
def test_reference_values(architecture: str, name: str, tokenizer: Any) -> None:
    """The reference divides rows by their sums."""
    model = golden_model(architecture, tokenizer)
    batch = golden_batch(architecture, name)
    expected = stored()[f"{architecture}/{name}/flow_matrix"]
    found = AttentionFlow()(model, batch)[0].numpy()
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
    found = AttentionFlow()(model, batch)
    assert found.isfinite().all()
    for row, text in enumerate(TEXTS):
        alone = AttentionFlow()(model, batch_of(model, [text]))[0]
        torch.testing.assert_close(found[row, : len(alone)], alone, atol=1e-7, rtol=0)
        assert not found[row, len(alone) :].any()
        assert (alone > 0).all() and (alone <= 1 + 1e-7).all()


def test_flow_starts_where_the_classifier_reads(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("gpt2")
    batch = batch_of(model, [TEXTS[2]])
    layers = [a[0].mean(0).numpy() for a in run_capture(model.eager(), batch).attentions]
    layers = [(layer + np.eye(len(layer))) / 2 for layer in layers]
    found = AttentionFlow()(model, batch)[0].numpy()
    np.testing.assert_allclose(found, max_flows(layers, len(layers[0]) - 1), atol=1e-7)


def test_long_inputs_are_refused_before_any_work(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    before = model.meter.total
    with pytest.raises(FaithbenchError, match="15 tokens and takes at most 14"):
        AttentionFlow(max_tokens=14)(model, batch_of(model, TEXTS))
    assert model.meter.total == before
    assert AttentionFlow(max_tokens=15)(model, batch_of(model, TEXTS)).shape == (3, 15)
    assert model.meter.since(before).forwards == 3

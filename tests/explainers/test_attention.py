"""Attention and rollout: against published code, by hand, and at the token that is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from faithbench.explainers.attention import (
    AttCat,
    Attention,
    AttentionXGradient,
    Cam,
    Gae,
    GradCam,
    Rollout,
    read_row,
    roll_out,
)
from faithbench.explainers.attention_flow import AttentionFlow
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.model import build_model
from faithbench.models.session import Session
from tests.support.architectures import (
    ARCHITECTURES,
    CASES,
    reference_batch,
    reference_network,
    reference_values,
    relative,
)

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


def numbers(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_reference_values(name: str, classes: int, golden: Any, tokenizer: Any) -> None:
    model = build_model(
        "reference",
        reference_network(classes),
        tokenizer,
        labels=tuple("abc"[:classes]),
    )
    batch = reference_batch(golden, name, classes, targets=[0])
    for explainer, key in ((Attention(), "attn_last"), (Rollout(), "rollout")):
        expected = golden[f"{name}_nl{classes}/f64/TE/{key}"][None, 1:]
        assert relative(explainer(Session(model), batch)[:, 1:], expected) < 1e-12, key


@pytest.mark.parametrize("explainer", [Attention(), Rollout(), AttentionFlow()], ids=repr)
def test_attention_alone_takes_and_costs_one_forward(
    explainer: Any, tiny_model: Any, batch_of: Any
) -> None:
    """Alone, before and after one that reads gradients: the same bits for the same price."""
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    once = {"forwards": 3, "backwards": 0, "passes": 1}
    both = {"forwards": 3, "backwards": 3, "passes": 1}
    calls: list[int] = []
    handle = model.eager().register_forward_hook(lambda *_: calls.append(1))
    found = []
    for order in ([explainer], [explainer, Gae()], [Gae(), explainer]):
        session = Session(model)
        calls.clear()
        for one in order:
            before = session.meter.total
            scores = one(session, batch)
            cost = session.meter.since(before)
            paid = {"forwards": cost.forwards, "backwards": cost.backwards, "passes": cost.passes}
            assert paid == (both if isinstance(one, Gae) else once)
            if one is explainer:
                found.append(scores)
        assert len(calls) == 1, "a backward pass goes on from the forward pass that is there"
    handle.remove()
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_roll_out_by_hand() -> None:
    """The last block is leftmost: (L2 + I)(L1 + I), rows summing to 1 if normalised."""
    first, second = numbers([[[1, 2], [0, 1]]]), numbers([[[0, 1], [3, 0]]])
    # [[1, 1], [3, 1]] [[2, 2], [0, 2]]
    assert roll_out([first, second], normalise=False).tolist() == [[[2, 4], [6, 8]]]
    # [[1/2, 1/2], [3/4, 1/4]] [[1/2, 1/2], [0, 1]]
    normal = roll_out([first, second], normalise=True)
    assert normal.tolist() == [[[0.25, 0.75], [0.375, 0.625]]]


def test_read_row_reads_each_examples_own() -> None:
    matrix = torch.arange(12.0).view(3, 2, 2)
    assert read_row(matrix, torch.tensor([1, 0, 1])).tolist() == [[2, 3], [4, 5], [10, 11]]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_row_of_the_token_that_is_read(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    """The first token, or the last one of GPT-2; padding is given nothing."""
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    lengths = batch.attention.sum(1).tolist()
    assert lengths == [4, 15, 7]
    found = Attention()(Session(model), batch)
    network = model.eager()
    for row, length in enumerate(lengths):
        alone = batch_of(model, [TEXTS[row]])
        place = length - 1 if architecture == "gpt2" else 0
        last = run_capture(network, alone).attentions[-1][0].numpy()
        expected = np.mean([head[place] for head in last], axis=0)
        np.testing.assert_allclose(found[row, :length].numpy(), expected, atol=1e-12)
        assert found[row, :length].sum().item() == pytest.approx(1)
        assert not found[row, length:].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_rollout_written_out(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    found = Rollout()(Session(model), batch).numpy()
    seen = run_capture(model.eager(), batch)
    for row, length in enumerate([4, 15, 7]):
        place = length - 1 if architecture == "gpt2" else 0
        # Attention rows sum to 1, so normalising A + I is halving it.
        reached = np.eye(length)[place]
        for block in reversed(seen.attentions):
            reached = reached @ (block[row, :, :length, :length].numpy().mean(0) + np.eye(length))
        np.testing.assert_allclose(found[row, :length], reached / 4, atol=1e-12)
        assert not found[row, length:].any()


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_reference_values_with_gradients(
    name: str, classes: int, golden: Any, tokenizer: Any
) -> None:
    """GAE always; the others where nothing is padded, since published code averages over padding.

    What they give on a padded input is then what they give on the same input without it.
    """
    model = build_model(
        "reference", reference_network(classes), tokenizer, labels=tuple("abc"[:classes])
    )
    batch = reference_batch(golden, name, classes)
    expected = reference_values(golden, name, classes, "GAE/row0")
    assert relative(Gae()(Session(model), batch)[:, 1:], expected) < 1e-12
    if "pad" not in name:
        for explainer, key in ((AttCat(), "AttCAT/transcam"), (Cam(), "ML/cam")):
            expected = reference_values(golden, name, classes, key)
            found = explainer(Session(model), batch)[:, 1:]
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14, err_msg=key)
        check_grad_cam(model, batch, reference_values(golden, name, classes, "ML/attn_gradcam"))


def check_grad_cam(model: Any, batch: Any, expected: np.ndarray) -> None:
    """Scale to 0..1 over the whole matrix, as published code does: NaN where all is 0."""
    seen = run_capture(model.eager(), batch)
    weights = seen.attention_gradients[-1].mean(dim=(2, 3), keepdim=True)
    matrix = (weights * seen.attentions[-1]).mean(dim=1).clamp(min=0)
    found = GradCam()(Session(model), batch)[:, 1:]
    for row, values in enumerate(expected):
        if np.isnan(values).any():
            assert not found[row].any()
        else:
            low, high = matrix[row].min(), matrix[row].max()
            np.testing.assert_allclose((found[row] - low) / (high - low), values, atol=1e-10)


def test_attention_times_gradient_by_hand(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS, [0, 1, 0])
    seen = run_capture(model.eager(), batch)
    heads = (seen.attentions[-1] * seen.attention_gradients[-1])[:, :, 0].numpy()
    found = AttentionXGradient()(Session(model), batch).numpy()
    np.testing.assert_allclose(found, heads.sum(axis=1) / 4, atol=1e-15)


def test_the_attention_of_one_query_by_hand(tiny_model: Any, batch_of: Any) -> None:
    """Means over queries are means over one, whatever the number of tokens."""
    model = tiny_model("bilstm")
    batch = batch_of(model, TEXTS, [0, 1, 0])
    seen = run_capture(model.network, batch)
    attention, gradient = (a[0][:, 0, 0] for a in (seen.attentions, seen.attention_gradients))
    real = batch.attention
    mean = (gradient * real).sum(dim=1, keepdim=True) / real.sum(dim=1, keepdim=True)
    expected = {
        Attention(): attention,
        AttentionXGradient(): attention * gradient,
        Cam(): gradient.clamp(min=0),
        GradCam(): (mean * attention).clamp(min=0),
    }
    for explainer, values in expected.items():
        torch.testing.assert_close(explainer(Session(model), batch), values, rtol=0, atol=1e-15)

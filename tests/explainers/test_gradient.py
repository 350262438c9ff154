"""Input times gradient: against captum, in closed form, and per example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from explainers import ARCHITECTURES, INPUTS, reference_batch, reference_network, relative
from faithbench.explainers.gradient import InputXGradient
from faithbench.models import Model, build_model, inputs_of
from faithbench.types import Batch

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


@pytest.fixture(scope="module")
def reference(tokenizer: Any) -> Model:
    import copy

    network = copy.deepcopy(reference_network(2)).float()
    return build_model("reference", network, tokenizer, labels=("a", "b"))


@pytest.mark.parametrize("name", INPUTS)
def test_captum_values(name: str, golden: Any, reference: Model) -> None:
    target = int(golden[f"{name}_nl2/ixg_target"])
    assert target == golden[f"{name}_nl2/logits"].argmax()
    batch = reference_batch(golden, name, 2, targets=[target])
    found = InputXGradient()(reference, batch)
    assert found.dtype == torch.float32
    assert relative(found, golden[f"{name}_nl2/ixg_sum"][None]) < 1e-5


def logit(model: Model, batch: Batch, scale: torch.Tensor) -> np.ndarray:
    """Return each target's logit with one token's word embedding scaled."""
    network = model.network
    table = network.get_input_embeddings()
    handle = table.register_forward_hook(lambda _, __, out: out * scale[..., None])
    with torch.no_grad():
        logits = network(**inputs_of(network, batch.ids, batch.types, batch.attention)).logits
    handle.remove()
    return logits.gather(1, batch.targets[:, None])[:, 0].numpy()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_slope_of_the_logit_as_an_embedding_grows(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    """Input times gradient is the derivative by a factor on the embedding, at 1."""
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 1])
    found = InputXGradient()(model, batch)
    step = 1e-5
    for token in (1, 2):
        scale = torch.ones(batch.ids.shape, dtype=torch.float64)
        scale[:, token] += step
        up = logit(model, batch, scale)
        scale[:, token] -= 2 * step
        slope = (up - logit(model, batch, scale)) / (2 * step)
        np.testing.assert_allclose(found[:, token].numpy(), slope, atol=1e-7)
    assert not found[batch.attention == 0].any()


def test_a_batch_is_its_examples(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    together = InputXGradient()(model, batch_of(model, TEXTS, [0, 1, 1]))
    for row, (text, target) in enumerate(zip(TEXTS, [0, 1, 1], strict=True)):
        alone = InputXGradient()(model, batch_of(model, [text], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-12)

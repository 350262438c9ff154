"""Input times gradient: against captum, in closed form, and per example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Example
from faithbench.explainers.gradient import (
    DeepShap,
    Gradient,
    GradientShap,
    InputXGradient,
    IntegratedGradients,
    SmoothGrad,
    deep_lift,
)
from faithbench.models.encoding import inputs_of
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session
from faithbench.testing.conformance import batch_of as conformance_batch
from faithbench.testing.conformance import check_explainer
from faithbench.testing.tiny import tiny_model as tiny
from tests.support.architectures import (
    ARCHITECTURES,
    INPUTS,
    reference_batch,
    reference_network,
    relative,
)

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
    found = InputXGradient()(Session(reference), batch)
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
    found = InputXGradient()(Session(model), batch)
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
    together = InputXGradient()(Session(model), batch_of(model, TEXTS, [0, 1, 1]))
    for row, (text, target) in enumerate(zip(TEXTS, [0, 1, 1], strict=True)):
        alone = InputXGradient()(Session(model), batch_of(model, [text], [target]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", INPUTS)
def test_captum_gradients_and_integrals(name: str, golden: Any, reference: Model) -> None:
    target = int(golden[f"{name}_nl2/ixg_target"])
    batch = reference_batch(golden, name, 2, targets=[target])
    # captum's baselines keep [CLS], [SEP] and padding.
    erasable = batch.attention.bool() & (batch.ids != 101) & (batch.ids != 102)
    batch = replace(batch, erasable=erasable)
    for norm in ("l1", "l2"):
        expected = golden[f"{name}_nl2/grad_{norm}"][None]
        assert relative(Gradient(norm)(Session(reference), batch), expected) < 1e-5
    for kind in ("zero", "pad", "mask"):
        for steps in (20, 50):
            explainer = IntegratedGradients(steps, kind)
            found = with_tokens(explainer, reference, batch)
            assert relative(found, golden[f"{name}_nl2/ig_{kind}_n{steps}"][None]) < 1e-5


def with_tokens(explainer: IntegratedGradients, model: Model, batch: Batch) -> torch.Tensor:
    """Explain with the id that the mask has in the reference's own vocabulary; pad is 0 in both."""
    with mock.patch.object(type(model), "erasure_token", lambda *_: ("[MASK]", 103)):
        return explainer(Session(model), batch)


def test_the_summed_gradient_of_a_layer_norm_is_nothing(tiny_model: Any, batch_of: Any) -> None:
    """Embeddings go into a LayerNorm, which a shift of all entries does not change."""
    model = tiny_model()
    batch = batch_of(model, TEXTS, [0, 1, 0])
    assert Gradient("sum")(Session(model), batch).abs().max() < 1e-12
    assert Gradient("l2")(Session(model), batch)[batch.erasable].min() > 1e-3


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("baseline", ["zero", "pad", "mask"])
def test_integrals_are_complete(
    architecture: str, baseline: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    explainer = IntegratedGradients(steps=100, baseline=baseline)
    scores = explainer(Session(model), batch)
    # Quadrature resolves a kink slowly: LayerNorm has one at zeros, DistilBERT's head is a ReLU.
    limit = 2e-2 if baseline == "zero" or architecture == "distilbert" else 1e-6
    assert explainer.gaps(Session(model), batch, scores).abs().max() < limit
    if baseline != "zero":
        assert scores[~batch.erasable].abs().max() == 0


def test_noise_of_nothing_is_the_gradient(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS, [0, 1, 0])
    still = SmoothGrad(samples=3, noise=0.0)(Session(model), batch)
    assert torch.allclose(still, Gradient("l2")(Session(model), batch), atol=1e-12)
    moved = SmoothGrad(samples=3)(Session(model), batch)
    assert (moved - still)[batch.erasable].abs().max() > 1e-4


def test_expected_gradients_approach_the_integral(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS[:1], [1])
    exact = IntegratedGradients(steps=100)(Session(model), batch)
    few = GradientShap(samples=8, noise=0.0)(Session(model), batch)
    many = GradientShap(samples=4096, noise=0.0)(Session(model), batch)
    scale = exact.abs().max()
    assert (many - exact).abs().max() / scale < 0.02
    assert (many - exact).abs().max() < (few - exact).abs().max()


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (Gradient("l3"), "norm 'l3' is not one of l1, l2, sum"),
        (IntegratedGradients(steps=0), "steps is 1 or more, found 0"),
        (IntegratedGradients(baseline="one"), "baseline 'one' is not one of zero, pad, mask"),
    ],
)
def test_wrong_settings(explainer: Any, message: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    with pytest.raises(FaithbenchError, match=message):
        explainer(Session(model), batch_of(model, TEXTS))


PAIRS = ["good film || the plot is dull", "a great plot is not very good || the film"]
BASELINES = ("mask", "pad", "zero")


def test_it_keeps_the_rules_of_explainers() -> None:
    check_explainer(DeepShap())


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_sum_to_the_difference_of_logits(
    architecture: str, classes: int, baseline: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture, classes)
    for batch in (
        batch_of(model, TEXTS, [0, 1, classes - 1]),
        batch_of(model, PAIRS, [1, classes - 1], "both"),
        batch_of(model, PAIRS, [1, classes - 1], "text_b"),
    ):
        found = deep_lift(Session(model), batch, baseline)
        assert found.difference.abs().min() > 1e-6
        assert found.gap.abs().max() < 1e-9
        torch.testing.assert_close(found.scores.sum(1), found.difference, rtol=0, atol=1e-9)
        # What is in both cannot contribute: special tokens, the other text, padding.
        assert not found.scores[~batch.erasable].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_both_ends_of_an_answer_add_up(architecture: str) -> None:
    model = tiny(architecture, qa=True)
    batch = conformance_batch(model, [Example("e", "the film is good", 0, "a plot is dull")])
    session = Session(model)
    for part in session.per_output(batch):
        found = deep_lift(session, part)
        assert found.difference.abs().min() > 1e-6
        assert found.gap.abs().max() < 1e-9


@pytest.mark.parametrize("baseline", ["mask", "pad"])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "electra", "albert"])
def test_the_difference_is_that_of_the_plain_network(
    architecture: str, baseline: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 1])
    token = model.erasure_token(baseline)[1]
    rows = (batch.ids, batch.ids.masked_fill(batch.erasable, token))
    logits = [
        model.network(**inputs_of(model.network, ids, batch.types, batch.attention)).logits
        for ids in rows
    ]
    expected = (logits[0] - logits[1]).gather(1, batch.targets[:, None])[:, 0]
    found = DeepShap(baseline)(Session(model), batch).sum(1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_float32_agrees_with_float64(tiny_model: Any, batch_of: Any) -> None:
    narrow, wide = tiny_model("bert", 2, torch.float32), tiny_model("bert", 2, torch.float64)
    found = deep_lift(Session(narrow), batch_of(narrow, TEXTS, [0, 1, 1]))
    assert found.scores.dtype == torch.float32
    assert found.gap.abs().max() < 1e-6
    expected = deep_lift(Session(wide), batch_of(wide, TEXTS, [0, 1, 1]))
    torch.testing.assert_close(found.scores.double(), expected.scores, rtol=0, atol=1e-6)


def test_half_precision_is_widened(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert", 2, torch.bfloat16)
    found = deep_lift(Session(model), batch_of(model, TEXTS, [0, 1, 1]))
    assert found.scores.dtype == torch.float32
    assert found.gap.abs().max() < 1e-6


def test_a_token_that_is_the_baseline_scores_nothing(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good dull film"], [1])
    # A text cannot spell the mask token, so it is put in place of `dull`.
    masked = torch.where(torch.arange(5) == 2, model.erasure_id("mask"), batch.ids)
    batch = replace(batch, ids=masked)
    scores = DeepShap()(Session(model), batch)[0]
    assert scores[2] == 0
    assert scores[[1, 3]].abs().min() > 1e-6


def test_a_batch_is_its_examples_deep_shap(tiny_model: Any, batch_of: Any) -> None:
    for architecture in ("bert", "gpt2"):
        model = tiny_model(architecture)
        together = DeepShap()(Session(model), batch_of(model, TEXTS, [0, 1, 1]))
        for row, (text, target) in enumerate(zip(TEXTS, [0, 1, 1], strict=True)):
            alone = DeepShap()(Session(model), batch_of(model, [text], [target]))[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-12)


def test_input_and_baseline_are_both_charged(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    session = Session(model)
    start = session.meter.total
    scores = DeepShap()(session, batch_of(model, TEXTS, [0, 1, 1]))
    spent = session.meter.since(start)
    assert (spent.forwards, spent.backwards) == (6, 6)
    assert not scores.requires_grad


def test_another_baseline_is_refused(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match="baseline 'mean' is not one of"):
        DeepShap("mean")(Session(model), batch_of(model, TEXTS, [0, 1, 1]))

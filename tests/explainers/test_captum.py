"""captum's classes by name, against our own methods where both exist."""

from __future__ import annotations

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.gradient import InputXGradient, IntegratedGradients
from faithbench.explainers.selection import find_explainers
from faithbench.models.session import Session
from faithbench.testing.conformance import check_explainer

TEXTS = ["good film", "the plot is not very good"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("captum:InputXGradient", InputXGradient()),
        ("captum:IntegratedGradients:steps=20", IntegratedGradients(steps=20)),
    ],
)
def test_captum_agrees_with_ours(tiny_model, batch_of, name: str, ours) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS, [0, 1])
    (chosen,) = find_explainers(name)
    theirs = chosen.explainer(Session(model), batch)
    real = batch.attention.bool()
    np.testing.assert_allclose(
        theirs[real].numpy(), ours(Session(model), batch)[real].numpy(), atol=1e-9
    )


def test_names_and_settings(tiny_model) -> None:
    (chosen,) = find_explainers("captum:ShapleyValueSampling:samples=3")
    assert (chosen.name, chosen.package) == ("captum:ShapleyValueSampling", "captum")
    assert chosen.label == "captum:ShapleyValueSampling:samples=3"
    assert find_explainers(chosen.label)[0].explainer == chosen.explainer


@pytest.mark.parametrize("name", ["FeatureAblation", "ShapleyValueSampling", "Saliency"])
def test_they_keep_the_rules(name: str) -> None:
    (chosen,) = find_explainers(f"captum:{name}:samples=2")
    check_explainer(chosen.explainer, architectures=("bert", "gpt2"), longest=False)


def test_an_unknown_class_offers_the_nearest() -> None:
    with pytest.raises(FaithbenchError, match="did you mean 'IntegratedGradients'"):
        find_explainers("captum:IntegratedGradient")


def test_a_class_that_cannot_is_one_line(tiny_model, batch_of) -> None:
    model = tiny_model()
    (chosen,) = find_explainers("captum:LRP")
    with pytest.raises(FaithbenchError, match="captum's LRP cannot explain") as caught:
        chosen.explainer(Session(model), batch_of(model, TEXTS))
    assert "\n" not in str(caught.value)

"""Conformance checks that every built-in explainer passes, offered to plugin authors.

from faithbench.testing import check_explainer

def test_mine():
    check_explainer(MyExplainer())
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import numpy as np
import torch

from faithbench.core.types import Batch, Example
from faithbench.explainers.protocol import Explainer
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import explain
from faithbench.testing.tiny import ARCHITECTURES, tiny_model

SINGLES = (
    "good",
    "the plot is not very good and the film is dull",
    "good good good film film",
    "a greatly dull film , not a good plot .",
)
PAIRS = (("the film is good", "a plot is dull"), ("good plot", "not a very good film"))


def check_explainer(
    explainer: Explainer, architectures: Sequence[str] = ARCHITECTURES, longest: bool = True
) -> None:
    """Raise AssertionError, naming what is wrong, unless an explainer keeps the rules.

    `longest` also tries the longest input the model takes; leave it out for an explainer
    that is made for short inputs.
    """
    check_settings(explainer)
    for architecture in architectures:
        for classes in (2, 3):
            model = tiny_model(architecture, classes)
            _check_model(explainer, model, longest and classes == 2)
        _check_scores(explainer, tiny_model(architecture, qa=True), _pairs(), "text")


def check_settings(explainer: Explainer) -> None:
    """Check that settings are plain values with defaults that survive JSON."""
    kind = type(explainer)
    assert is_dataclass(explainer), f"{kind.__name__} is not a dataclass"
    assert kind.__dataclass_params__.frozen, f"{kind.__name__} is not frozen"
    settings: dict[str, Any] = asdict(explainer)
    again = json.loads(json.dumps(settings))
    assert again == settings, f"settings of {kind.__name__} do not survive JSON"
    kind()  # every field has a default
    plain = (bool, int, float, str)
    for field in fields(explainer):
        value = getattr(explainer, field.name)
        assert isinstance(value, plain), f"setting {field.name} is a {type(value).__name__}"


def _check_model(explainer: Explainer, model: Model, longest: bool) -> None:
    before = _state(model)
    _check_scores(explainer, model, [Example(f"e{i}", t, 0) for i, t in enumerate(SINGLES)])
    _check_scores(explainer, model, _pairs(), "both")
    if longest:
        words = " ".join(f"w{i % 60}" for i in range(model.max_tokens - 2))
        _check_scores(explainer, model, [Example("longest", words, 0)])
    after = _state(model)
    for key, value in before.items():
        assert _same(value, after[key]), f"{_name(explainer, model)} changed the model's {key}"


def _check_scores(
    explainer: Explainer, model: Model, examples: Sequence[Example], evidence: Any = "text"
) -> None:
    """Check shape, finiteness, repeatability, and that a batch gives what singles give."""
    batch = batch_of(model, examples, evidence)
    scores, again = _explained(explainer, model, batch), _explained(explainer, model, batch)
    name = _name(explainer, model)
    assert scores.shape == batch.ids.shape, f"{name}: scores of shape {tuple(scores.shape)}"
    real = scores[batch.erasable]
    assert torch.isfinite(real).all(), f"{name}: a score is not finite"
    assert torch.equal(real, again[batch.erasable]), f"{name}: same seed, other scores"
    for row, example in enumerate(examples):
        one = batch_of(model, [example], evidence, start=row)
        single = _explained(explainer, model, one)[0][one.erasable[0]]
        together = scores[row][batch.erasable[row]]
        apart = (single - together).abs().max() / single.abs().max().clamp(min=1e-12)
        assert apart < 1e-6, f"{name}: {example.id} alone differs from its batch by {apart:.1e}"


def batch_of(
    model: Model, examples: Sequence[Example], evidence: Any = "text", start: int = 0
) -> Batch:
    """Collate examples with a fixed target and seed each."""
    encodings = [encode(model, example, evidence) for example in examples]
    seeds = [1000 + start + i for i in range(len(examples))]
    if len(model.outputs) == 1:
        targets: Any = [(start + i) % len(model.labels) for i in range(len(examples))]
    else:
        # The last two tokens of the text: in a causal model, earlier ones do not read the rest.
        ends = [np.flatnonzero(encoding.erasable)[-2:].tolist() for encoding in encodings]
        targets = [(places[0], places[-1]) for places in ends]
    return collate(model, encodings, targets, seeds)


def _explained(explainer: Explainer, model: Model, batch: Batch) -> torch.Tensor:
    with Session(model) as session:
        return explain(session, explainer, batch).detach().double().cpu()


def _pairs() -> list[Example]:
    return [Example(f"p{i}", a, 0, b) for i, (a, b) in enumerate(PAIRS)]


def _name(explainer: Explainer, model: Model) -> str:
    return f"{type(explainer).__name__} on {model.name}"


def _state(model: Model) -> dict[str, Any]:
    """Take down everything an explainer could have changed."""
    network = model.network
    probe = batch_of(model, [Example("probe", "the film is not good", 0)])
    with torch.enable_grad():
        embeddings = network.get_input_embeddings()(probe.ids).detach().requires_grad_()
        logits = network(inputs_embeds=embeddings, attention_mask=probe.attention).logits
        (gradient,) = torch.autograd.grad(logits.sum(), embeddings)
    modules = list(network.modules())
    return {
        "parameters": [p.detach().clone() for p in network.parameters()],
        "buffers": [b.clone() for b in network.buffers()],
        "hooks": [
            len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
            for m in modules
        ],
        "requires_grad": [p.requires_grad for p in network.parameters()],
        "mode": [m.training for m in modules],
        "attention implementation": network.config._attn_implementation,
        "logits": [logits.detach()],
        "input gradient": [gradient],
        "gradient mode": torch.is_grad_enabled(),
    }


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, list) and a and isinstance(a[0], torch.Tensor):
        return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)

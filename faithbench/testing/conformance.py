"""Conformance checks that every built-in explainer passes, offered to plugin authors.

They raise AssertionError, so that they read well in a test: each message says what was expected,
what was found, and how to fix it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from faithbench.core.plugins import Plugin
from faithbench.core.types import Batch, Example
from faithbench.data.dataset import Dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.passes.capture import embedding_leaf
from faithbench.explainers.protocol import Explainer, needs_training, taught
from faithbench.explainers.registry import plugins_of_file
from faithbench.explainers.selection import explainer_class
from faithbench.models.encoding import collate, encode, inputs_of
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


def check_file(
    path: str | Path, architectures: Sequence[str] = ARCHITECTURES, longest: bool = True
) -> None:
    """Check every explainer that a plugin file registers; a file without one is an error."""
    plugins = plugins_of_file(Path(path).resolve())
    assert plugins, (  # a file may bring metrics alone
        f"{Path(path).name} names no explainer, so there is nothing to check; put "
        "@faithbench.explainer('name') above its class"
    )
    for plugin in plugins:
        check_explainer(_with_defaults(plugin), architectures, longest)


def _with_defaults(plugin: Plugin) -> Explainer:
    """Make an explainer with the default of every setting."""
    try:
        explainer: Explainer = explainer_class(plugin)()
    except TypeError as error:
        raise AssertionError(
            f"explainer {plugin.name!r} cannot be made without settings ({error}); "
            "give every field a default"
        ) from error
    return explainer


def check_explainer(
    explainer: Explainer, architectures: Sequence[str] = ARCHITECTURES, longest: bool = True
) -> None:
    """Raise AssertionError unless an explainer conforms on tiny models of these architectures.

    With `longest` it is also run on the longest input that the model takes; pass False for an
    explainer that is made for short inputs.
    """
    check_settings(explainer)
    for architecture in architectures:
        for classes in (2, 3):
            model = tiny_model(architecture, classes)
            check_model(_taught(explainer, model), model, longest and classes == 2)
        asked = tiny_model(architecture, qa=True)
        _check_scores(_taught(explainer, asked), asked, _pairs(), "text")


def _taught(explainer: Explainer, model: Model) -> Explainer:
    """Let an explainer that needs it learn from a small training split of the model's kind."""
    if not needs_training(explainer):
        return explainer
    task = load_task("squad" if model.kind.has_answers else "sst2")
    examples = tuple(
        Example(f"t{i}", text, i % 2, "good ?" if model.kind.has_answers else None)
        for i, text in enumerate(SINGLES)
    )
    train = Dataset(task, "folder", "train", examples, "0" * 64, "none", checked=True)
    return taught(explainer, train, model)


def check_settings(explainer: Explainer) -> None:
    """Check that settings are plain values, all with defaults, that survive JSON."""
    cls = type(explainer)
    name = cls.__name__
    assert is_dataclass(explainer), (
        f"{name} is not a dataclass, so its settings are unknown; put @dataclass(frozen=True) "
        "above the class"
    )
    assert cls.__dataclass_params__.frozen, (
        f"{name} can be changed while it runs; write @dataclass(frozen=True) above the class"
    )
    for field in fields(explainer):
        value = getattr(explainer, field.name)
        assert isinstance(value, bool | int | float | str), (
            f"setting {field.name!r} of {name} is a {type(value).__name__}, expected bool, int, "
            "float or str; encode it as one of these"
        )
    settings: dict[str, Any] = asdict(explainer)
    again = json.loads(json.dumps(settings))
    assert again == settings, (
        f"settings of {name} change when they are stored as JSON, from {settings} to {again}; "
        "use finite numbers"
    )
    try:
        cls()
    except TypeError as error:
        raise AssertionError(
            f"{name} cannot be made without settings ({error}); give every field a default"
        ) from error


def check_model(explainer: Explainer, model: Model, longest: bool = True) -> None:
    """Check an explainer on one classifier: its scores of texts and pairs, and that it leaves the
    model as it was.
    """
    before = _state(model)
    _check_scores(explainer, model, [Example(f"e{i}", t, 0) for i, t in enumerate(SINGLES)])
    _check_scores(explainer, model, _pairs(), "both")
    if longest:
        words = " ".join(f"w{i % 60}" for i in range(model.max_tokens - 2))
        _check_scores(explainer, model, [Example("longest", words, 0)])
    after = _state(model)
    for key, value in before.items():
        assert _same(value, after[key]), (
            f"{_name(explainer, model)} changed the model's {key}; leave the model as it was: put "
            "hooks and patches in a `with` block that undoes them"
        )


def _check_scores(
    explainer: Explainer, model: Model, examples: Sequence[Example], evidence: Any = "text"
) -> None:
    """Check shape, finiteness, repeatability, and that a batch gives what singles give."""
    batch = batch_of(model, examples, evidence)
    scores, again = _explained(explainer, model, batch), _explained(explainer, model, batch)
    name = _name(explainer, model)
    assert scores.shape == batch.ids.shape, (
        f"{name}: found scores of shape {tuple(scores.shape)}, expected "
        f"{tuple(batch.ids.shape)}; return one score per token of each example, special tokens "
        "and padding included"
    )
    counted = scores[batch.erasable]
    assert torch.isfinite(counted).all(), (
        f"{name}: a score is not finite; check divisions by 0 and logarithms"
    )
    assert torch.equal(counted, again[batch.erasable]), (
        f"{name}: two calls with the same seeds gave other scores; draw from a generator that is "
        "seeded by batch.seeds"
    )
    for row, example in enumerate(examples):
        alone = batch_of(model, [example], evidence, start=row)
        single = _explained(explainer, model, alone)[0][alone.erasable[0]]
        together = scores[row][batch.erasable[row]]
        difference = (single - together).abs().max() / single.abs().max().clamp(min=1e-12)
        # Products in float32 add in an order that depends on the batch's shape.
        assert difference < 1e-5, (
            f"{name}: the scores of example {example.id!r} alone differ from those in a batch by "
            f"{difference:.1e} of the largest; neither padding nor other examples may change them"
        )


def batch_of(
    model: Model, examples: Sequence[Example], evidence: Any = "text", start: int = 0
) -> Batch:
    """Collate examples with a fixed target and seed each."""
    encodings = [encode(model, example, evidence) for example in examples]
    seeds = [1000 + start + i for i in range(len(examples))]
    targets = [
        model.kind.probe_target(encoding, start + i, model.labels)
        for i, encoding in enumerate(encodings)
    ]
    return collate(model, encodings, targets, seeds)


def _explained(explainer: Explainer, model: Model, batch: Batch) -> torch.Tensor:
    with Session(model) as session:
        return explain(session, explainer, batch).detach().cpu().double()


def _pairs() -> list[Example]:
    return [Example(f"p{i}", a, 0, b) for i, (a, b) in enumerate(PAIRS)]


def _name(explainer: Explainer, model: Model) -> str:
    return f"{type(explainer).__name__} on {model.name}"


def _state(model: Model) -> dict[str, Any]:
    """Return everything that an explainer could change in a model, to compare it afterwards.

    Logits and the gradient at the input also show what no list names: patched functions, say.
    """
    network = model.network
    probe = batch_of(model, [Example("probe", "the film is not good", 0)])
    with torch.enable_grad(), embedding_leaf(network) as leaf:
        logits = network(**inputs_of(network, probe.ids, probe.types, probe.attention)).logits
        (gradient,) = torch.autograd.grad(logits.sum(), leaf[0])
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

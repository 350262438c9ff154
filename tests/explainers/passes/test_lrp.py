"""The relevance pass: against published code, conserved, per example, and leaving no trace."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.autograd import Function
from transformers import PreTrainedModel, RobertaConfig, RobertaForSequenceClassification

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.passes import lrp as relevance
from faithbench.explainers.passes import lrp_rules as relevance_rules
from faithbench.explainers.passes.capture import embedding_leaf, run_capture
from faithbench.explainers.passes.lrp import LrpRules, Products, Relevance, run_relevance
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.models.encoding import inputs_of
from faithbench.models.magnitudes import Magnitudes
from tests.support.architectures import (
    ARCHITECTURES,
    CASES,
    reference_batch,
    reference_network,
    reference_values,
    relative,
)

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
TARGETS = [0, 1, 1]
RULES = {
    "no rule": None,
    "two groups": [[[1, 0, 2, 0], [0, 0, 1, 1]], [[0, 1, 0, 0], [1, 0, 0, 0]]],
    "no head below": [[[0, 0, 0, 0], [0, 0, 1, 1]], [[0, 0, 0, 0], [1, 0, 0, 0]]],
    "no head above": [[[1, 0, 0, 1], [0, 0, 0, 0]]],
}


def rule_of(groups: list[list[list[int]]] | None) -> HeadRule | None:
    return None if groups is None else HeadRule(torch.tensor(groups))


# Against the published code


def read_outs(
    network: PreTrainedModel, batch: Batch, masks: dict[str, list[list[int]]], found: Finder
) -> dict[str, torch.Tensor]:
    """Read every stored quantity from our passes: [classes, tokens] without entry 0."""
    seen = run_capture(network, batch)
    plain = found(network, batch, None)
    read = {
        "TE/full_lrp": plain.hidden[0].sum(-1),
        "TE/partial_lrp": plain.attentions[-1].clamp(min=0).mean(1)[:, 0],
        "TE/transformer_attribution_l0": rolled(seen.attention_gradients, plain.attentions),
        # Without a mask the published MGAE weighs halved relevance: transformer attribution.
        "ML/MGAE_none": rolled(seen.attention_gradients, plain.attentions),
    }
    for name, mask in masks.items():
        # With one, it weighs relevance as it arrived: before the mask, and before halving.
        arrived = found(network, batch, HeadRule(torch.tensor([mask]), released=True)).arrived
        read[f"ML/MGAE_{name}"] = rolled(seen.attention_gradients, arrived)
    return {key: row[:, 1:] for key, row in read.items()}


Finder = Callable[[PreTrainedModel, Batch, HeadRule | None], Relevance]


def rolled(
    gradients: tuple[torch.Tensor, ...], relevances: tuple[torch.Tensor, ...]
) -> torch.Tensor:
    """Multiply the row-normalised I + mean max(0, G * R) of all blocks; return row 0."""
    joint = torch.eye(gradients[0].shape[-1], dtype=torch.float64)
    for gradient, rel in zip(gradients, relevances, strict=True):
        step = (gradient * rel).clamp(min=0).mean(1) + torch.eye(rel.shape[-1])
        joint = step / step.sum(-1, keepdim=True) @ joint
    return joint[:, 0]


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_reference_values(name: str, classes: int, golden: Any, golden_masks: Any) -> None:
    batch = reference_batch(golden, name, classes)
    found = read_outs(reference_network(classes), batch, golden_masks, run_relevance)
    expected = {key: reference_values(golden, name, classes, key) for key in found}
    differences = {key: relative(row, expected[key]) for key, row in found.items()}
    assert len(differences) == 7
    assert max(differences.values()) < 1e-3, differences
    # One block deep, there is little to divide by: the reference's epsilon hardly shows.
    assert differences["TE/partial_lrp"] < 1e-6
    # The reference's logits are float32.
    logits = run_capture(reference_network(classes), batch).logits[0].numpy()
    np.testing.assert_allclose(logits, golden[f"{name}_nl{classes}/logits"], atol=5e-6)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_reference_values_with_products_of_float32(
    name: str, classes: int, golden: Any, golden_masks: Any
) -> None:
    """Within the tolerance of float64, whose own values they are to 3e-5."""
    batch, network = reference_batch(golden, name, classes), reference_network(classes)
    products = Products(torch.float32, Magnitudes())

    def mixed(network: PreTrainedModel, batch: Batch, heads: HeadRule | None) -> Relevance:
        return run_relevance(network, batch, heads, products)

    wide = read_outs(network, batch, golden_masks, run_relevance)
    for key, row in read_outs(network, batch, golden_masks, mixed).items():
        expected = reference_values(golden, name, classes, key)
        assert relative(row, expected) < (1e-6 if key == "TE/partial_lrp" else 1e-3), key
        assert 0 < relative(row, wide[key].numpy()) < 3e-5, key


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_what_is_left_is_the_epsilon_of_the_reference(
    name: str, classes: int, golden: Any, golden_masks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the 1e-9 that published code adds to each denominator, all agree to 1e-8."""
    adopt_epsilon(monkeypatch)

    def found(network: PreTrainedModel, batch: Batch, heads: HeadRule | None) -> Relevance:
        with cloned(network):
            made = run_relevance(network, batch, heads)
        # `hidden` is read above the clone at a block's entrance.
        entered = run_capture(network, batch).hidden[0]
        return Relevance(
            (entered * divided(made.hidden[0], entered), *made.hidden[1:]),
            made.attentions,
            made.arrived,
            made.position,
        )

    batch = reference_batch(golden, name, classes)
    read = read_outs(reference_network(classes), batch, golden_masks, found)
    for key, row in read.items():
        assert relative(row, reference_values(golden, name, classes, key)) < 1e-8, key


def divided(amount: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
    """Divide as published code does: always 1e-9 added below, 0 where the whole is 0."""
    return torch.where(whole == 0, 0.0, amount / (whole + 1e-9))


def adopt_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the reference's division into every rule."""
    monkeypatch.setattr(relevance_rules, "share", divided)
    monkeypatch.setattr(relevance, "LinearRule", SpelledOutLinear)

    def softmax(rules: LrpRules, scores: torch.Tensor, dim: int = -1, **options: Any) -> Any:
        return LrpRules.softmax(rules, MaskedScores.apply(scores), dim, **options)

    for function in (F.softmax, torch.softmax, torch.Tensor.softmax):
        monkeypatch.setitem(relevance.RULES, function, softmax)


@contextmanager
def cloned(network: PreTrainedModel) -> Iterator[None]:
    """Multiply relevance by x / (x + 1e-9) wherever the reference clones or selects x."""
    handles = []
    for module in network.modules():
        if type(module).__name__ in ("BertLayer", "BertSelfAttention", "BertPooler"):
            handles.append(
                module.register_forward_pre_hook(lambda _, args: (Clone.apply(args[0]), *args[1:]))
            )
        if type(module).__name__ == "BertAttention":
            handles.append(
                module.register_forward_hook(lambda _, __, out: (Clone.apply(out[0]), *out[1:]))
            )
    yield
    for handle in handles:
        handle.remove()


class Clone(Function):
    """The reference's fan-out: x times the sum of R / x."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.view(x.shape)

    @staticmethod
    def backward(ctx: Any, rel: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return x * divided(rel, x)


class MaskedScores(Clone):
    """The reference's sum of attention scores and mask, the mask's share dropped."""

    @staticmethod
    def backward(ctx: Any, rel: torch.Tensor) -> torch.Tensor:
        part = Clone.backward(ctx, rel)
        own, whole = (r.sum((1, 2, 3), keepdim=True) for r in (part, rel))
        return part * divided(divided(own.abs(), own.abs()) * whole, own)


class SpelledOutLinear(Function):
    """The linear rule as it is defined, bias left out."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: Any, _: Any) -> Any:
        ctx.save_for_backward(x, weight)
        return F.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, rel: torch.Tensor) -> tuple[Any, ...]:
        x, weight = ctx.saved_tensors
        up, down = x.clamp(min=0), x.clamp(max=0)
        plus, minus = weight.clamp(min=0), weight.clamp(max=0)
        part = divided(rel, up @ plus.T + down @ minus.T)
        return up * (part @ plus) + down * (part @ minus), None, None, None


def test_released_mask_of_the_first_block_changes_nothing_in_the_rollout(golden: Any) -> None:
    """What arrives at a block is kept before its own mask, as in the published code."""
    batch = reference_batch(golden, "s2_len12", 2)
    full = torch.ones(1, 3, 4)
    first, second = full.clone(), full.clone()
    first[0, 0, 1:], second[0, 1, 1:] = 0, 0
    found = [
        run_relevance(reference_network(2), batch, HeadRule(mask, released=True)).arrived
        for mask in (full, first, second)
    ]
    assert all(torch.equal(a, b) for a, b in zip(found[0], found[1], strict=True))
    assert [torch.equal(a, b) for a, b in zip(found[0], found[2], strict=True)] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("name", ["s2_len12", "s6_len10_pad6"])
def test_roberta_with_the_weights_of_bert(name: str, golden: Any) -> None:
    """Another implementation of the same function has the same relevance."""
    bert = reference_network(2)
    config = RobertaConfig(
        **{key: getattr(bert.config, key) for key in ("vocab_size", "hidden_size", "hidden_act")},
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=bert.config.max_position_embeddings + 1,
        layer_norm_eps=bert.config.layer_norm_eps,
        pad_token_id=0,
        type_vocab_size=1,
    )
    config._attn_implementation = "eager"
    roberta = RobertaForSequenceClassification(config).double().eval().requires_grad_(False)
    weights = {}
    for key, value in bert.state_dict().items():
        name_there = (
            key.replace("bert.pooler.dense", "classifier.dense")
            .replace("bert.", "roberta.")
            .replace("classifier.weight", "classifier.out_proj.weight")
            .replace("classifier.bias", "classifier.out_proj.bias")
        )
        weights[name_there] = value
    # Positions count from padding_idx + 1, and there is one segment.
    places = weights["roberta.embeddings.position_embeddings.weight"]
    weights["roberta.embeddings.position_embeddings.weight"] = F.pad(places, (0, 0, 1, 0))
    segments = weights["roberta.embeddings.token_type_embeddings.weight"]
    weights["roberta.embeddings.token_type_embeddings.weight"] = segments[:1]
    roberta.load_state_dict(weights)
    batch = reference_batch(golden, name, 2)
    assert not batch.types.any()
    found = run_relevance(roberta, batch)
    expected = reference_values(golden, name, 2, "TE/full_lrp")
    assert relative(found.hidden[0].sum(-1)[:, 1:], expected) < 1e-3
    same = run_relevance(bert, batch)
    for here, there in zip(found.hidden, same.hidden, strict=True):
        torch.testing.assert_close(here, there, rtol=0, atol=1e-9)


# Conserved, per example, and zero on padding


@pytest.mark.parametrize("groups", RULES.values(), ids=RULES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_relevance_is_conserved(
    architecture: str, groups: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    found = run_relevance(model.eager(), batch, rule_of(groups))
    assert len(found.hidden) == 3
    for boundary in found.hidden:
        torch.testing.assert_close(
            boundary.sum((1, 2)), torch.ones(3, dtype=torch.float64), rtol=0, atol=1e-9
        )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_relevance_is_conserved_in_float32(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    found = run_relevance(model.eager(torch.float32), batch, rule_of(RULES["two groups"]))
    for boundary in found.hidden:
        assert boundary.dtype == torch.float32
        torch.testing.assert_close(boundary.sum((1, 2)), torch.ones(3), rtol=0, atol=1e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_heads_that_are_left_out_carry_nothing(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    found = run_relevance(model.eager(), batch, rule_of(RULES["no head above"]))
    below, above = (a.abs().sum((0, 2, 3)) for a in found.attentions)
    assert not above.any()
    assert (below > 0).tolist() == [True, False, False, True]


@pytest.mark.parametrize("groups", RULES.values(), ids=RULES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_padding_has_no_relevance(
    architecture: str, groups: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    padding = batch.attention == 0
    assert padding.sum() > 10
    found = run_relevance(model.eager(), batch, rule_of(groups))
    for boundary in found.hidden:
        assert not boundary[padding].any()
    for block in (*found.attentions, *found.arrived):
        assert not block.transpose(1, 3)[padding].any()
        assert not block.transpose(1, 2)[padding].any()


@pytest.mark.parametrize("groups", RULES.values(), ids=RULES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_batch_is_its_examples(
    architecture: str, groups: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    together = run_relevance(model.eager(), batch_of(model, TEXTS, TARGETS), rule_of(groups))
    for row, (text, target) in enumerate(zip(TEXTS, TARGETS, strict=True)):
        single = batch_of(model, [text], [target])
        n = single.ids.shape[1]
        alone = run_relevance(model.eager(), single, rule_of(groups))
        assert together.position[row] == alone.position[0] == (n - 1) * (architecture == "gpt2")
        for many, one in zip(together.hidden, alone.hidden, strict=True):
            torch.testing.assert_close(many[row, :n], one[0], rtol=0, atol=1e-9)
        for kind in ("attentions", "arrived"):
            for many, one in zip(getattr(together, kind), getattr(alone, kind), strict=True):
                torch.testing.assert_close(many[row, :, :n, :n], one[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_target_is_each_examples_own(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture, classes=3)
    found = run_relevance(model.eager(), batch_of(model, ["good film"] * 3, [2, 0, 1]))
    again = run_relevance(model.eager(), batch_of(model, ["good film"] * 3, [0, 1, 2]))
    torch.testing.assert_close(found.hidden[0], again.hidden[0][[2, 0, 1]], rtol=0, atol=1e-12)
    assert (found.hidden[0][0] - found.hidden[0][1]).abs().max() > 1e-3


# What is computed stays the same, inside and afterwards


@pytest.mark.parametrize("groups", [None, RULES["no head below"]], ids=["no rule", "rule"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_rules_change_no_value(
    architecture: str, groups: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    network = model.eager()
    batch = batch_of(model, TEXTS, TARGETS)
    inputs = inputs_of(network, batch.ids, batch.types, batch.attention)
    plain = network(**inputs).logits
    rules = LrpRules(rule_of(groups))
    with embedding_leaf(network), rules.watch(network), rules:
        inside = network(**inputs).logits
    assert inside.requires_grad
    torch.testing.assert_close(inside, plain, rtol=0, atol=1e-12)


def trace(network: PreTrainedModel, batch: Batch) -> tuple[Any, ...]:
    """Return the logits and input gradients of a probe, and every hook of every module."""
    seen = run_capture(network, batch)
    hooks = {
        name: [
            tuple(getattr(module, kind))
            for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
        ]
        for name, module in network.named_modules()
    }
    return seen.logits, seen.embedding_gradients, hooks


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_stays_patched(
    architecture: str, broken: bool, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    network, probe = model.eager(), batch_of(model, ["the film is good"], [1])
    logits, gradients, hooks = trace(network, probe)
    if broken:
        wrong = batch_of(model, TEXTS, TARGETS)
        # An id outside the vocabulary fails after the hooks are set.
        wrong.ids[0, 1] = 10_000
        with pytest.raises(IndexError):
            run_relevance(network, wrong)
    else:
        run_relevance(network, batch_of(model, TEXTS, TARGETS))
    assert torch.equal(network(**_inputs(network, probe)).logits, logits)
    after = trace(network, probe)
    assert torch.equal(after[0], logits)
    assert torch.equal(after[1], gradients)
    assert after[2] == hooks
    assert not any(parameter.requires_grad for parameter in network.parameters())
    # The sine has no rule, so it would be refused were the rules still in force.
    assert torch.sin(torch.zeros(1, requires_grad=True)).item() == 0


def _inputs(network: PreTrainedModel, batch: Batch) -> dict[str, torch.Tensor]:
    return inputs_of(network, batch.ids, batch.types, batch.attention)


# What has no rule is refused


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Exponential(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp()


class Gate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.tanh()


class Quotient(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.tanh()


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.add(x, x, alpha=2)


@pytest.mark.parametrize(
    ("activation", "named"),
    [
        (Sine(), r"no relevance rule for torch\.sin, which .* gradient or perturbation explainer"),
        (Exponential(), r"no relevance rule for torch\.Tensor\.exp, which .*"),
        (Gate(), "no relevance rule for the element-wise product of two activations, which .*"),
        (Quotient(), "no relevance rule for a division by an activation"),
        (Scaled(), "no relevance rule for add with alpha"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_operation_without_a_rule_is_named(
    activation: torch.nn.Module, named: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")
    network = copy.deepcopy(model.eager())
    network.bert.pooler.activation = activation
    batch = batch_of(model, ["good film"])
    with pytest.raises(FaithbenchError, match=named):
        run_relevance(network, batch)
    # The refusal leaves the network usable.
    assert run_capture(network, batch).logits.shape == (1, 2)


def test_fused_attention_is_refused(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good film"])
    with pytest.raises(FaithbenchError, match="scaled_dot_product_attention"):
        run_relevance(model.network, batch)
    # Gradients alone can be had of it.
    seen = run_capture(model.network, batch)
    assert seen.attentions == () and seen.embedding_gradients.abs().max() > 0

"""AttnLRP: each rule by hand, attention in relevance form, what is conserved and refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.overrides import resolve_name

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.passes.attn_lrp import AttnLrpRules, run_attn_lrp
from faithbench.explainers.passes.capture import embedding_leaf, run_capture
from faithbench.explainers.passes.rule_mode import ELEMENTWISE
from faithbench.models.encoding import inputs_of
from tests.support.architectures import ARCHITECTURES, reference_batch, reference_network

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
TARGETS = [0, 1, 1]


def relevance(
    function: Callable[..., torch.Tensor], *inputs: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return each input times the gradient of a function's sum under the rules."""
    leaves = [x.double().requires_grad_() for x in inputs]
    with AttnLrpRules():
        value = function(*leaves)
    torch.testing.assert_close(value, function(*leaves))
    gradients = torch.autograd.grad(value.sum(), leaves)
    return tuple((x * g).detach() for x, g in zip(leaves, gradients, strict=True))


def close(found: torch.Tensor, expected: Any) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


# Each rule by hand


def test_linear_layer_gives_the_bias_its_share() -> None:
    weight, bias = torch.tensor([[2.0, -1.0], [3.0, 4.0]]).double(), torch.tensor([7.0, 5.0])
    (found,) = relevance(
        lambda x: F.linear(x, weight, bias.double())[:, 1], torch.tensor([[1.0, 10.0]])
    )
    close(found, [[3, 40]])  # the output is 3 + 40 + 5


def test_softmax_by_its_taylor_rule() -> None:
    x = torch.tensor([0, math.log(3)], dtype=torch.float64)  # s = 1/4, 3/4
    (found,) = relevance(lambda x: torch.softmax(x, -1)[0], x)
    # R = 1/4, 0 arrives; x_i (R_i - s_i / 4) leaves.
    close(found, [0, -math.log(3) * 3 / 16])


def test_matrix_product_halves() -> None:
    a, b = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])
    found_a, found_b = relevance(lambda a, b: (a @ b)[0, 0], a, b)  # 5 + 14
    close(found_a, [[2.5, 7], [0, 0]])
    close(found_b, [[2.5, 0], [7, 0]])


def test_product_of_activations_halves_and_of_a_constant_does_not() -> None:
    found_a, found_b = relevance(
        lambda a, b: a * b * 3 / 2, torch.tensor([4.0]), torch.tensor([5.0])
    )
    close(found_a, [15])
    close(found_b, [15])


@pytest.mark.parametrize("function", sorted(ELEMENTWISE, key=resolve_name), ids=resolve_name)
def test_element_wise_functions_pass_relevance(function: Any) -> None:
    x = torch.tensor([-2.0, -0.3, 1e-9, 0.7, 5.0])
    (found,) = relevance(function, x)
    close(found, function(x.double()))


def test_the_slope_at_zero_is_the_limit() -> None:
    for function, slope in ((F.gelu, 0.5), (torch.tanh, 1.0), (F.silu, 0.5), (F.relu, 0.0)):
        x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
        with AttnLrpRules():
            value = function(x)
        (found,) = torch.autograd.grad(value.sum(), x)
        close(found, [slope] * 3)


def test_layer_norm_holds_its_deviation_constant() -> None:
    weight, bias = torch.tensor([2.0, 5.0]).double(), torch.tensor([10.0, 20.0]).double()
    (found,) = relevance(
        lambda x: F.layer_norm(x, (2,), weight, bias, 0.0)[:, 1], torch.tensor([[1.0, 3.0]])
    )
    close(found, [[-2.5, 7.5]])  # 5 (x - mean) / std + 20 with mean 2, std 1
    (bare,) = relevance(lambda x: F.layer_norm(x, (2,), eps=0.0)[:, 1], torch.tensor([[1.0, 3.0]]))
    close(bare, [[-0.5, 1.5]])


# Attention, in the paper's own form


def epsilon(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Eq. 8: R_i = x_i sum_j w_ji R_j / z_j."""
    return x * ((r / (x @ weight.T + bias)) @ weight)


def bilinear(a: np.ndarray, b: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prop. 3.3: R_a = sum a b R / (2 o), and the same for b."""
    part = r / (2 * (a @ b))
    return a * (part @ b.T), b * (a.T @ part)


def test_an_attention_block_in_relevance_form() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 3))
    layers = [(rng.normal(size=(3, 3)), rng.normal(size=3)) for _ in range(4)]
    (wq, bq), (wk, bk), (wv, bv), (wo, bo) = layers
    q, k, v = x @ wq.T + bq, x @ wk.T + bk, x @ wv.T + bv
    scores = q @ k.T
    attention = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    context = attention @ v
    out = context @ wo.T + bo + x
    r = np.zeros_like(out)
    r[0, 1] = out[0, 1]
    into_block, residual = r * (out - x) / out, r * x / out
    r_attention, r_v = bilinear(attention, v, epsilon(context, wo, bo, into_block))
    r_scores = scores * (r_attention - attention * r_attention.sum(-1, keepdims=True))
    r_q, r_k = bilinear(q, k.T, r_scores)
    expected = residual + epsilon(x, wv, bv, r_v)
    expected = expected + epsilon(x, wq, bq, r_q) + epsilon(x, wk, bk, r_k.T)

    def block(x: torch.Tensor) -> torch.Tensor:
        q, k, v = (F.linear(x, *map(torch.tensor, layer)) for layer in layers[:3])
        context = torch.matmul(F.softmax(torch.matmul(q, k.T), dim=-1), v)
        return (F.linear(context, *map(torch.tensor, layers[3])) + x)[0, 1]

    (found,) = relevance(block, torch.tensor(x))
    close(found, expected)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_fused_attention_says_the_same(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    fused, eager = run_attn_lrp(model.network, batch), run_attn_lrp(model.eager(), batch)
    assert fused.abs().max() > 0.01
    torch.testing.assert_close(fused, eager, rtol=0, atol=1e-14)


# Obtained with the authors' code (lxt 2.1 on transformers 4.52.4, float64), which adds 1e-10 below
# f(x) / x; with that added here too, the largest relative difference over all inputs is 5e-15.
PUBLISHED = {
    ("s0_len3", 3, 1): (-0.26155486648, -0.0858097460718, 0.00182277385825),
    ("s1_len8", 2, 1): (
        -0.0662814922052, -0.0027213643353, -0.0389567375524, -0.000443622189162,
        0.0154712765782, 0.0185232135546, -0.0136634002411, -0.0699838822667,
    ),
    ("s6_len10_pad6", 3, 2): (
        0.104842635473, -0.0185244899507, -0.001766875499, -0.00862763371022, 0.0334118005886,
        -0.0254087599851, -0.0162531410508, 0.0184085408837, -0.0138580620238, 0.0175552936027,
        0, 0, 0, 0, 0, 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "classes", "target"), PUBLISHED)
def test_published_code_says_the_same(name: str, classes: int, target: int, golden: Any) -> None:
    batch = reference_batch(golden, name, classes, targets=[target])
    found = run_attn_lrp(reference_network(classes), batch)[0].numpy()
    np.testing.assert_allclose(found, PUBLISHED[name, classes, target], rtol=0, atol=1e-8)


# Conservation


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_biases_only_softmax_keeps_relevance(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    """The softmax of Prop. 3.1 keeps sum s g - sum x s (g - sum s g); all else is conserved.

    As sum s (g - sum s g) is 0, x may be replaced by log s, which is x less a constant.
    """
    model = tiny_model(architecture)
    network = copy.deepcopy(model.eager())
    for name, parameter in network.named_parameters():
        if name.endswith("bias"):
            parameter.zero_()
    batch = batch_of(model, TEXTS, TARGETS)
    rules = AttnLrpRules()
    with torch.enable_grad(), embedding_leaf(network), rules.watch(network), rules:
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention),
            output_attentions=True,
            output_hidden_states=True,
        )
    chosen = out.logits.gather(1, batch.targets[:, None])[:, 0]
    states = (out.hidden_states[0], *out.attentions)
    gradients = torch.autograd.grad(chosen.sum(), states)
    kept = torch.zeros_like(chosen)
    for s, g in zip(out.attentions, gradients[1:], strict=True):
        onward = torch.xlogy(s, s) * (g - (s * g).sum(-1, keepdim=True))
        kept = kept + (s * g - onward).sum(dim=(1, 2, 3))
    assert kept.abs().min() > 1e-4
    arrived = (states[0] * gradients[0]).sum(dim=(1, 2))
    torch.testing.assert_close(arrived + kept, chosen, rtol=0, atol=1e-9)


# The network stays what it is


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_rules_change_no_value_and_leave_nothing(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    network, batch = model.eager(), batch_of(model, TEXTS, TARGETS)
    before, hooks = run_capture(network, batch), hooks_of(network)
    rules = AttnLrpRules()
    with torch.enable_grad(), embedding_leaf(network), rules.watch(network), rules:
        inside = network(**inputs_of(network, batch.ids, batch.types, batch.attention)).logits
    torch.testing.assert_close(inside, before.logits, rtol=0, atol=1e-12)
    after = run_capture(network, batch)
    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.embedding_gradients, before.embedding_gradients)
    assert hooks_of(network) == hooks


def hooks_of(network: torch.nn.Module) -> list[tuple[int, ...]]:
    return [(*m._forward_hooks, *m._forward_pre_hooks) for m in network.modules()]


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


class Quotient(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / x.tanh()


@pytest.mark.parametrize(
    ("activation", "named"),
    [
        (Sine(), r"no AttnLRP rule for torch\.sin, which .* gradient or perturbation explainer"),
        (Quotient(), r"no AttnLRP rule for torch\.Tensor\.div, which .*"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_operation_without_a_rule_is_named(
    activation: torch.nn.Module, named: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")
    network = copy.deepcopy(model.eager())
    network.bert.pooler.activation = activation
    hooks = hooks_of(network)
    with pytest.raises(FaithbenchError, match=named):
        run_attn_lrp(network, batch_of(model, ["good film"]))
    assert hooks_of(network) == hooks

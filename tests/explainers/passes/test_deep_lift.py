"""DeepLIFT: each rule by hand, Shapley values, captum's values, completeness, what is refused."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from captum.attr import DeepLift as CaptumDeepLift
from torch.overrides import resolve_name

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import embedding_leaf, run_capture
from faithbench.explainers.passes.deep_lift import CURVES, DeepLiftRules, run_deep_lift
from faithbench.explainers.passes.rule_mode import ELEMENTWISE
from faithbench.models.encoding import inputs_of
from tests.support.architectures import ARCHITECTURES

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
TARGETS = [0, 1, 1]
Pair = tuple[torch.Tensor, torch.Tensor]


def multipliers(function: Callable[..., torch.Tensor], *pairs: Pair) -> tuple[torch.Tensor, ...]:
    """Return the multipliers of each pair of input and baseline, which get a row of their own."""
    leaves = [torch.stack(pair).double().requires_grad_() for pair in pairs]
    with DeepLiftRules():
        value = function(*leaves)
    torch.testing.assert_close(value, function(*leaves))
    found = torch.autograd.grad(value[0].sum(), leaves)
    assert not any(m[1].any() for m in found)  # baselines get none
    spent = sum((m[0] * (x[0] - x[1])).sum() for m, x in zip(found, leaves, strict=True))
    torch.testing.assert_close(spent, (value[0] - value[1]).sum(), rtol=1e-9, atol=1e-9)
    return tuple(m[0] for m in found)


def pair(x: Any, x0: Any) -> Pair:
    return torch.as_tensor(x, dtype=torch.float64), torch.as_tensor(x0, dtype=torch.float64)


def close(found: torch.Tensor, expected: Any, atol: float = 1e-12) -> None:
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


# Each rule by hand


def test_a_unit_is_rescaled() -> None:
    (found,) = multipliers(torch.relu, pair([2, -3, 1, -1], [-1, -1, 4, -1]))
    close(found, [2 / 3, 0, 1, 0])
    (found,) = multipliers(torch.tanh, pair([1.0, 0.5], [0.0, 0.5]))
    close(found, [math.tanh(1), 1 - math.tanh(0.5) ** 2])


def test_points_that_all_but_meet_get_the_derivative() -> None:
    step = torch.tensor([1e-9, 1e-12, 1e-15, 0.0], dtype=torch.float64)
    (found,) = multipliers(torch.tanh, (0.5 + step, torch.full_like(step, 0.5)))
    close(found, [1 - math.tanh(0.5) ** 2] * 4, atol=1e-8)


def test_points_on_both_sides_of_a_kink_do_not() -> None:
    (found,) = multipliers(torch.relu, pair([1e-12], [-3e-12]))
    close(found, [0.25])


@pytest.mark.parametrize(
    "function", sorted(ELEMENTWISE | CURVES, key=resolve_name), ids=resolve_name
)
def test_every_element_wise_function_is_complete(function: Any) -> None:
    x = pair([0.2, 3.0, 1e-9, 0.7, 5.0], [1.0, 3.0, 2e-9, 0.7 + 1e-12, 2.0])
    power = (3,) if "pow" in resolve_name(function) else ()
    (found,) = multipliers(lambda x: function(x, *power), x)
    assert torch.isfinite(found).all()


def test_a_product_is_split_at_the_midpoint() -> None:
    of_a, of_b = multipliers(torch.mul, pair([3], [1]), pair([5], [2]))
    close(of_a, [3.5])
    close(of_b, [2])


def test_two_features_of_a_product_get_their_shapley_values() -> None:
    rng = torch.Generator().manual_seed(0)
    a, a0, b, b0 = torch.randn(4, 7, generator=rng, dtype=torch.float64)
    of_a, of_b = multipliers(torch.mul, (a, a0), (b, b0))
    close(of_a * (a - a0), ((a * b0 - a0 * b0) + (a * b - a0 * b)) / 2)
    close(of_b * (b - b0), ((a0 * b - a0 * b0) + (a * b - a * b0)) / 2)


def test_two_factors_of_a_matrix_product_get_their_shapley_values() -> None:
    rng = torch.Generator().manual_seed(0)
    a, a0, b, b0 = torch.randn(4, 2, 2, generator=rng, dtype=torch.float64)
    of_a, of_b = multipliers(torch.matmul, (a, a0), (b, b0))
    whole = torch.ones(2, 2, dtype=torch.float64)
    close(of_a, whole @ ((b + b0) / 2).T)
    close(of_b, ((a + a0) / 2).T @ whole)
    close((of_a * (a - a0)).sum(), ((a @ b0 - a0 @ b0) + (a @ b - a0 @ b)).sum() / 2)


def test_a_factor_that_is_repeated_collects_its_shares() -> None:
    of_a, of_b = multipliers(torch.mul, pair([[1.0, 2.0]], [[0.0, 0.0]]), pair([[3.0]], [[1.0]]))
    close(of_a, [[2, 2]])
    close(of_b, [[0.5 + 1]])


def test_a_quotient_multiplies_by_the_reciprocal() -> None:
    of_a, of_b = multipliers(torch.div, pair([3], [1]), pair([4], [2]))
    close(of_a, [(1 / 4 + 1 / 2) / 2])
    close(of_b, [-2 / 8])  # the reciprocal's slope is -1 / (4 * 2)


def test_linear_operations_have_their_gradient() -> None:
    weight = torch.tensor([[2.0, -1.0], [3.0, 4.0]]).double()
    (found,) = multipliers(
        lambda x: (F.linear(x, weight) * 2 / 4 - 1).mean(-1), pair([5.0, 6.0], [1.0, 0.0])
    )
    close(found, [5 / 4, 3 / 4])


# Softmax and LayerNorm


def slope(function: Callable[[float], float], x: float, x0: float) -> float:
    return (function(x) - function(x0)) / (x - x0)


def test_softmax_step_by_step() -> None:
    x, x0 = [0.3, -1.0, 2.0], [0.1, 0.5, -1.5]
    (found,) = multipliers(lambda x: torch.softmax(x, -1)[..., 1:2], pair(x, x0))
    total, total0 = (sum(map(math.exp, row)) for row in (x, x0))
    log, log0 = math.log(total), math.log(total0)
    up = slope(math.exp, x[1] - log, x0[1] - log0)
    down = up * slope(math.log, total, total0)
    expected = [(i == 1) * up - down * slope(math.exp, x[i], x0[i]) for i in range(3)]
    close(found, expected)


def test_softmax_of_far_apart_rows_keeps_small_multipliers() -> None:
    """As exp(x) times 1 / sum exp x, these multipliers would be of the order of e^100."""
    x, x0 = torch.tensor([101.0, 100.0, 102.0]), torch.tensor([0.0, 1.0, -2.0])
    (found,) = multipliers(lambda x: torch.softmax(x, -1)[..., :1], (x, x0))
    assert found.abs().max() < 1
    narrow = torch.stack([x, x0]).requires_grad_()
    with DeepLiftRules():
        value = torch.softmax(narrow, -1)[:, 0]
    (single,) = torch.autograd.grad(value[0], narrow)
    torch.testing.assert_close(single[0].double(), found, rtol=0, atol=1e-6)


@pytest.mark.parametrize("mask", [-math.inf, torch.finfo(torch.float64).min])
def test_masked_scores_get_nothing(mask: float) -> None:
    x, x0 = pair([0.3, 1.0], [0.1, -2.0])
    (bare,) = multipliers(lambda x: torch.softmax(x, -1)[..., :1], (x, x0))
    leaf = torch.stack([F.pad(x, (0, 1)), F.pad(x0, (0, 1))]).requires_grad_()
    with DeepLiftRules():
        value = torch.softmax(leaf + torch.tensor([0, 0, mask]), -1)[:, 0]
    (found,) = torch.autograd.grad(value[0], leaf)
    close(found[0], [*bare.tolist(), 0])


def test_layer_norm_step_by_step() -> None:
    x, x0 = pair([1.0, 4.0, -1.0], [0.5, 0.0, 2.0])
    weight, bias, eps = pair([2.0, 3.0, 5.0], [1.0, 1.0, 1.0])[0], torch.ones(3).double(), 1e-3
    (found,) = multipliers(lambda x: F.layer_norm(x, (3,), weight, bias, eps)[..., 1:2], (x, x0))
    c, c0 = x - x.mean(), x0 - x0.mean()
    v, v0 = float((c**2).mean()), float((c0**2).mean())
    r, r0 = (v + eps) ** -0.5, (v0 + eps) ** -0.5
    of_centred = torch.tensor([0.0, 3 * (r + r0) / 2, 0.0], dtype=torch.float64)
    of_variance = 3 * (c + c0)[1] / 2 * slope(lambda v: (v + eps) ** -0.5, v, v0)
    of_centred = of_centred + of_variance * (c + c0) / 3
    close(found, of_centred - of_centred.mean())


# Whole networks


class BagOfWords(torch.nn.Module):
    """Mean word embedding, and a head on it; looks enough like a transformer to run."""

    def __init__(self, head: torch.nn.Module, width: int) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(40, width)
        self.head = head
        self.config = SimpleNamespace(model_type="bag", type_vocab_size=0)
        self.double().requires_grad_(False)

    @property
    def dtype(self) -> torch.dtype:
        return self.words.weight.dtype

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.words

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        mask = attention_mask[..., None].to(self.dtype)
        return {"logits": self.head((self.words(input_ids) * mask).sum(1) / mask.sum(1))}


def bag(head: torch.nn.Module, width: int = 4) -> tuple[Any, Batch, torch.Tensor, torch.Tensor]:
    """Return a network, a padded batch of two texts, their embeddings and baselines."""
    torch.manual_seed(0)
    network = BagOfWords(head, width)
    ids = torch.tensor([[1, 2, 3, 4], [5, 6, 0, 0]])
    attention = (ids != 0).long()
    targets = torch.tensor([0, 1])
    batch = Batch((), ids, torch.zeros_like(ids), attention, attention.bool(), targets, ())
    inputs = network.words(ids)
    baselines = torch.where(attention.bool()[..., None], network.words.weight[7], inputs)
    return network, batch, inputs, baselines


def test_linear_bag_of_words_is_weight_times_difference() -> None:
    head = torch.nn.Linear(4, 2)
    network, batch, inputs, baselines = bag(head)
    found = run_deep_lift(network, batch, inputs, baselines)
    expected = (head.weight[batch.targets][:, None] * (inputs - baselines)).sum(-1)
    close(found.scores, expected / batch.attention.sum(1, keepdim=True))
    assert found.gap.abs().max() < 1e-12


@pytest.mark.parametrize("activation", [torch.nn.ReLU, torch.nn.Tanh])
def test_captum_says_the_same_of_a_multi_layer_perceptron(activation: Any) -> None:
    torch.manual_seed(1)
    head = torch.nn.Sequential(
        torch.nn.Linear(4, 8), activation(), torch.nn.Linear(8, 6), activation()
    )
    head.append(torch.nn.Linear(6, 2))
    network, batch, inputs, baselines = bag(head)

    class FromEmbeddings(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = head

        def forward(self, embeddings: torch.Tensor) -> torch.Tensor:
            mask = batch.attention[..., None].repeat(len(embeddings) // 2, 1, 1)
            return self.head((embeddings * mask).sum(1) / mask.sum(1))

    expected = CaptumDeepLift(FromEmbeddings()).attribute(inputs, baselines, target=batch.targets)
    found = run_deep_lift(network, batch, inputs, baselines)
    close(found.scores, expected.sum(-1).detach(), atol=1e-9)


class BatchMean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(0, keepdim=True))[:, :2]


def test_a_network_that_mixes_examples_is_refused() -> None:
    network, batch, inputs, baselines = bag(BatchMean())
    with pytest.raises(FaithbenchError, match=r"miss the difference of logits by .* bag model"):
        run_deep_lift(network, batch, inputs, baselines)


class Gate(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * torch.sigmoid(x) / (2 + x.tanh()) ** 2)[:, :2]


def test_gates_and_quotients_are_complete() -> None:
    network, batch, inputs, baselines = bag(Gate())
    found = run_deep_lift(network, batch, inputs, baselines)
    assert found.difference.abs().min() > 0.01
    assert found.gap.abs().max() < 1e-12


class Sine(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x)


def test_an_operation_without_a_rule_is_named(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    network = copy.deepcopy(model.eager())
    network.bert.pooler.activation = Sine()
    hooks, batch = hooks_of(network), batch_of(model, ["good film"])
    inputs = network.get_input_embeddings()(batch.ids)
    with pytest.raises(
        FaithbenchError, match=r"no DeepLIFT rule for torch\.sin, which .* explainer"
    ):
        run_deep_lift(network, batch, inputs, inputs)
    with pytest.raises(FaithbenchError, match=r"no DeepLIFT rule for .*scaled_dot_product"):
        run_deep_lift(model.network, batch, inputs, inputs)
    assert hooks_of(network) == hooks


def hooks_of(network: torch.nn.Module) -> list[tuple[int, ...]]:
    return [(*m._forward_hooks, *m._forward_pre_hooks) for m in network.modules()]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_rules_change_no_value_and_leave_nothing(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    network, batch = model.eager(), batch_of(model, ["good film", "bad film"])
    before, hooks = run_capture(network, batch), hooks_of(network)
    rules = DeepLiftRules()
    with torch.enable_grad(), embedding_leaf(network), rules.watch(network), rules:
        inside = network(**inputs_of(network, batch.ids, batch.types, batch.attention)).logits
    assert inside.requires_grad
    torch.testing.assert_close(inside, before.logits, rtol=0, atol=1e-12)
    after = run_capture(network, batch)
    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.embedding_gradients, before.embedding_gradients)
    assert hooks_of(network) == hooks

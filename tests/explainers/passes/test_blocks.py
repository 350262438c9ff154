"""The recording shows what the network did, block by block, and leaves nothing behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.passes.blocks import watch_blocks
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.model import build_model
from tests.support.architectures import ARCHITECTURES

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_block_holds_what_the_network_computed(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    network = model.eager()
    seen, usual = watch_blocks(network, batch), run_capture(network, batch)
    assert len(seen.blocks) == 2
    assert seen.position.tolist() == usual.position.tolist()
    for i, block in enumerate(seen.blocks):
        assert block.pre == (architecture == "gpt2")
        torch.testing.assert_close(block.inputs, usual.hidden[i])
        torch.testing.assert_close(block.product.attention, usual.attentions[i])
        context = (block.product.attention @ block.product.values).transpose(1, 2).flatten(2)
        mixed = F.linear(context, block.projection.weight, block.projection.bias)
        torch.testing.assert_close(block.norms[0].inputs, block.inputs + mixed)
        # The last hidden state of GPT-2 is what ln_f makes of the last block's output.
        last = block.norms[1].outputs if block.pre and i == 1 else block.call.outputs
        torch.testing.assert_close(last, usual.hidden[i + 1])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_norm_is_linear_but_for_spread_and_bias(
    architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    for block in watch_blocks(model.eager(), batch_of(model, TEXTS)).blocks:
        for norm in block.norms:
            rebuilt = norm.linear(norm.inputs) / norm.spread() + norm.bias
            torch.testing.assert_close(rebuilt, norm.outputs)


def test_the_norms_of_gpt2_are_those_that_read_each_sum(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("gpt2")
    inner = model.eager().transformer
    first, second = watch_blocks(model.eager(), batch_of(model, TEXTS)).blocks
    assert [norm.weight is inner.h[0].ln_2.weight for norm in first.norms] == [True, False]
    assert first.norms[1].weight is inner.h[1].ln_1.weight
    assert second.norms[1].weight is inner.ln_f.weight
    torch.testing.assert_close(first.norms[1].inputs, first.call.outputs)
    torch.testing.assert_close(second.norms[1].inputs, second.call.outputs)


def test_shared_blocks_are_told_apart(tiny_model: Any, batch_of: Any) -> None:
    """ALBERT calls one module for every block."""
    model = tiny_model("albert")
    first, second = watch_blocks(model.eager(), batch_of(model, TEXTS)).blocks
    assert first.call.module is second.call.module
    torch.testing.assert_close(first.call.outputs, second.inputs)
    assert (first.inputs - second.inputs).abs().max() > 0.1


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nothing_is_left_behind(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture)
    network, batch = model.eager(), batch_of(model, TEXTS)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    hooks = count_hooks(network)
    watch_blocks(network, batch)
    assert count_hooks(network) == hooks
    assert not any(p.requires_grad or p.grad is not None for p in network.parameters())
    assert not network.training
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])


def test_hooks_go_when_the_network_fails(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    network, batch = model.eager(), batch_of(model, TEXTS)
    wrong = batch.__class__(**{**batch.__dict__, "ids": batch.ids + 10_000})
    hooks = count_hooks(network)
    with pytest.raises(IndexError):
        watch_blocks(network, wrong)
    assert count_hooks(network) == hooks


def count_hooks(network: torch.nn.Module) -> list[int]:
    """Count each module's hooks: transformers leaves some of its own."""
    return [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.modules()]


@pytest.mark.parametrize("kind", ["Llama", "GPTNeoX"])
def test_other_blocks_are_refused(kind: str, tokenizer: Any, batch_of: Any) -> None:
    """LLaMA has no layer norm; in GPT-NeoX no norm reads the sum of residual and attention."""
    import transformers

    config = getattr(transformers, f"{kind}Config")(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    network = getattr(transformers, f"{kind}ForSequenceClassification")(config)
    model = build_model(kind, network, tokenizer, labels=("a", "b"))
    with pytest.raises(FaithbenchError, match=r"no blocks .* choose a gradient"):
        watch_blocks(model.eager(), batch_of(model, TEXTS))

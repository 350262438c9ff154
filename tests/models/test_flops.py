"""FLOPs by the closed formulas of each architecture, at lengths that were never counted."""

from __future__ import annotations

import gc
import warnings

import pytest
import torch
from torch import nn

from faithbench.core.errors import FaithbenchError
from faithbench.models import flops
from faithbench.models.flops import COUNTED, count_by_length, flops_of
from faithbench.testing import tiny

LENGTHS = (1, 7, 23, 64)


def block(n: int, width: int, inner: int) -> int:
    """Four projections, the two products of attention, and the two layers after it."""
    return 2 * n * 4 * width * width + 2 * 2 * n * n * width + 2 * 2 * n * width * inner


@pytest.mark.parametrize("n", LENGTHS)
def test_a_bert_by_its_formula(tiny_model, n: int) -> None:
    assert n not in COUNTED
    pooler, head = 2 * 32 * 32, 2 * 32 * 3
    assert flops_of(tiny_model(classes=3))(n) == 2 * block(n, 32, 48) + pooler + head


@pytest.mark.parametrize("n", LENGTHS)
def test_a_question_answerer_has_its_head_at_every_token(qa_model, n: int) -> None:
    assert flops_of(qa_model)(n) == 2 * block(n, 32, 48) + 2 * n * 32 * 2


@pytest.mark.parametrize("n", LENGTHS)
def test_a_choice_is_one_row(n: int) -> None:
    model = tiny.tiny_model(choices=True)
    assert flops_of(model)(n) == 2 * block(n, 32, 48) + 2 * 32 * 32 + 2 * 32


@pytest.mark.parametrize("n", LENGTHS)
def test_a_cnn_by_its_formula(tiny_model, n: int) -> None:
    convolutions, hidden, head = 2 * n * 16 * 16 * (3 + 5), 2 * (16 + 64) * 16, 2 * 16 * 2
    assert flops_of(tiny_model("cnn"))(n) == convolutions + hidden + head


@pytest.mark.parametrize("n", LENGTHS)
def test_a_bilstm_by_its_formula(tiny_model, n: int) -> None:
    lstms = 2 * 2 * n * 4 * 16 * (12 + 16)
    attention, context, head = 2 * n * (32 * 16 + 16), 2 * n * 32, 2 * 32 * 2
    assert flops_of(tiny_model("bilstm"))(n) == lstms + attention + context + head


@pytest.mark.parametrize("n", LENGTHS)
def test_a_small_transformer_by_its_formula(tiny_model, n: int) -> None:
    widening, attention, head = 2 * n * 12 * 16, 2 * 2 * n * 16, 2 * 16 * 2
    assert flops_of(tiny_model("transformer"))(n) == (
        widening + block(n, 16, 64) + attention + head
    )


@pytest.mark.parametrize("architecture", tiny.ARCHITECTURES)
def test_readable_attention_costs_what_fused_attention_costs(tiny_model, architecture: str) -> None:
    model = tiny_model(architecture)
    eager = count_by_length(lambda n: flops._forward(model.eager(), n), 64, "eager")
    assert flops_of(model) == eager and eager(50) > eager(49) > 0


def test_torch_own_encoder_and_lstm_are_counted_too() -> None:
    """Fused kernels, for which torch's counter finds nothing, are not taken."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 3).eval()
    found = count_by_length(lambda n: encoder(torch.zeros(1, n, 8)), 30, "encoder")
    assert found(17) == 3 * block(17, 8, 16)
    lstm = nn.LSTM(4, 6, bidirectional=True, batch_first=True).eval()
    found = count_by_length(lambda n: lstm(torch.zeros(1, n, 4)), 30, "lstm")
    assert found(17) == 2 * 17 * 2 * 4 * 6 * (4 + 6)


def test_a_network_whose_attention_is_cut_into_blocks_is_refused() -> None:
    """Up to 16 tokens it looks like a network of constant cost."""
    layer = nn.Linear(4, 4)
    with pytest.raises(FaithbenchError, match=r"'blocks'.*at 17 tokens 1024, not 512"):
        count_by_length(lambda n: layer(torch.zeros(-(-n // 16) * 16, 4)), 17, "blocks")


def test_a_model_is_counted_once_left_alone_and_forgotten() -> None:
    model = tiny.tiny_model()
    runs = []
    handle = model.network.register_forward_pre_hook(
        lambda *_: runs.append(torch.is_grad_enabled())
    )
    weights = {name: value.clone() for name, value in model.network.state_dict().items()}
    state, fast = torch.get_rng_state(), torch.backends.mha.get_fastpath_enabled()
    mkldnn = torch.backends.mkldnn.enabled
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = flops_of(model)
    assert runs == [False] * 4
    assert flops_of(model.with_max_tokens(20)) is first and len(runs) == 4
    assert not model.network.training and torch.equal(torch.get_rng_state(), state)
    assert torch.backends.mha.get_fastpath_enabled() == fast
    assert torch.backends.mkldnn.enabled == mkldnn
    for name, value in model.network.state_dict().items():
        assert torch.equal(value, weights[name])
    handle.remove()
    before = len(flops._counted)
    del model, handle
    gc.collect()
    assert len(flops._counted) == before - 1


def test_counting_inside_inference_mode_finds_the_same(tiny_model) -> None:
    model = tiny_model()
    with torch.inference_mode():
        inside = count_by_length(lambda n: flops._forward(model.network, n), 64, "bert")
    assert inside == flops_of(model)


def test_numbers_beyond_the_precision_of_floats_are_exact() -> None:
    exact = [3 * 10**15 * n * n + 7 * n + 1 for n in COUNTED]
    assert flops.FlopsByLength(tuple(exact))(513) == 3 * 10**15 * 513 * 513 + 7 * 513 + 1

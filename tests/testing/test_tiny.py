"""Tiny models: the same weights each time, of every architecture, with biases that count."""

from __future__ import annotations

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.testing.tiny import (
    ARCHITECTURES,
    PARTLY_SERVED,
    WITHOUT_BLOCKS,
    tiny_model,
    tiny_tokenizer,
)


def test_words_fall_into_pieces() -> None:
    tokenizer = tiny_tokenizer()
    assert tokenizer.tokenize("goodly films, not w59") == [
        "good", "##ly", "film", "##s", ",", "not", "w59",
    ]  # fmt: skip
    pair = tokenizer("good film", "dull plot")
    assert tokenizer.convert_ids_to_tokens(pair["input_ids"]) == [
        "[CLS]", "good", "film", "[SEP]", "dull", "plot", "[SEP]",
    ]  # fmt: skip
    assert pair.sequence_ids() == [None, 0, 0, None, 1, 1, None]


@pytest.mark.parametrize("architecture", (*ARCHITECTURES, *WITHOUT_BLOCKS, *PARTLY_SERVED))
def test_the_same_arguments_give_the_same_weights(architecture: str) -> None:
    state = torch.random.get_rng_state()
    first, second = tiny_model(architecture, 3), tiny_model(architecture, 3)
    assert torch.equal(torch.random.get_rng_state(), state)  # the caller's draws stay the same
    for a, b in zip(first.network.parameters(), second.network.parameters(), strict=True):
        assert a.dtype == torch.float64
        assert torch.equal(a, b)
    assert first.labels == ("class 0", "class 1", "class 2")
    assert first.name == f"tiny-{architecture}" and first.weights_sha256 == f"{architecture}-3"


def test_no_bias_is_0_and_no_norm_is_1() -> None:
    for name, parameter in tiny_model().network.named_parameters():
        if name.endswith("bias"):
            assert parameter.abs().min() > 0, name
        if "LayerNorm.weight" in name:
            assert (parameter - 1).abs().min() > 0, name


def test_a_question_answerer_has_a_start_and_an_end() -> None:
    model = tiny_model("roberta", qa=True)
    assert model.labels == () and len(model.outputs) == 2


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(FaithbenchError, match="did you mean 'bert'"):
        tiny_model("brt")


def test_a_projection_is_part_of_the_model() -> None:
    plain, sparse = tiny_model("bilstm"), tiny_model("bilstm", projection="sparsegen:0.5")
    assert sparse.network.config.projection == "sparsegen:0.5"
    assert (plain.weights_sha256, sparse.weights_sha256) == ("bilstm-2", "bilstm-2-sparsegen:0.5")

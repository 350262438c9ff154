"""ALTI and value zeroing: against published code, exact sums, and a loop that zeroes by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from transformers import (
    AutoModelForSequenceClassification,
    DistilBertConfig,
    PreTrainedModel,
    RobertaConfig,
)

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Encoding, Example
from faithbench.explainers import decomposition
from faithbench.explainers.decomposition import (
    Alti,
    ValueZeroing,
    contributions,
    roll_back,
    split,
)
from faithbench.explainers.passes.blocks import Block, watch_blocks
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session
from tests.support.architectures import ARCHITECTURES, INPUTS, reference_network

GOLDEN = Path(__file__).parents[1] / "reference" / "golden" / "alti_flow.npz"
TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
REFERENCES = {
    "alti": Alti(),
    "alti_l2": Alti(norm="l2"),
    "alti_ln2": Alti(variant="alti-ln2"),
    "norm_kobayashi": Alti(variant="norm"),
    "globenc_norm2": Alti(variant="globenc"),
}
EXPLAINERS = (*REFERENCES.values(), ValueZeroing(), ValueZeroing(rollout=False))


@cache
def stored() -> dict[str, np.ndarray]:
    """Every reference array, by `<architecture>/<input>/<key>`; weights but BERT's beside them."""
    with np.load(GOLDEN) as file:
        return {key: file[key] for key in file.files}


@cache
def golden_network(architecture: str) -> PreTrainedModel:
    """Build the network that reference values belong to, in float64."""
    if architecture == "bert":
        return reference_network(2)
    sizes = {"vocab_size": 1000, "num_labels": 2}
    configs = {
        "roberta": RobertaConfig(
            **sizes,
            hidden_size=32,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=130,
            layer_norm_eps=1e-12,
            type_vocab_size=1,
        ),
        "distilbert": DistilBertConfig(
            **sizes, dim=32, n_layers=3, n_heads=4, hidden_dim=64, max_position_embeddings=128
        ),
    }
    network = AutoModelForSequenceClassification.from_config(configs[architecture])
    start = f"{architecture}/weights/"
    weights = {k.removeprefix(start): v for k, v in stored().items() if k.startswith(start)}
    network.load_state_dict({k: torch.tensor(v) for k, v in weights.items()})
    return network.double()


def golden_model(architecture: str, tokenizer: Any) -> Model:
    return build_model("reference", golden_network(architecture), tokenizer, labels=("a", "b"))


def golden_batch(architecture: str, name: str) -> Batch:
    ids, types, attention = (
        torch.tensor(stored()[f"{architecture}/{name}/{key}"][None].astype(np.int64))
        for key in ("input_ids", "token_type_ids", "attention_mask")
    )
    real = attention[0].bool().numpy()
    encoding = Encoding(
        example=Example(name, "", 0),
        ids=ids[0].numpy()[real],
        types=types[0].numpy()[real],
        erasable=np.ones(real.sum(), dtype=bool),
        words=np.zeros(real.sum(), dtype=np.int64),
        spans=(),
        word_spans=(),
        truncated=0,
    )
    return Batch((encoding,), ids, types, attention, attention.bool(), torch.tensor([0]), (0,))


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert"])
@pytest.mark.parametrize("name", INPUTS)
def test_reference_values(architecture: str, name: str, tokenizer: Any) -> None:
    """The reference adds 1e-6 to each difference and rounds to float32, so not to all digits."""
    model = golden_model(architecture, tokenizer)
    batch = golden_batch(architecture, name)
    for key, explainer in REFERENCES.items():
        expected = stored()[f"{architecture}/{name}/{key}"]
        found = explainer(Session(model), batch)[0].numpy()
        if key == "globenc_norm2":  # neither normalised nor rounded: the same to many digits
            np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-10)
        else:
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=key)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("both", [False, True])
def test_the_parts_add_up(architecture: str, both: bool, tiny_model: Any, batch_of: Any) -> None:
    """The sum over tokens, and the bias terms, are the state that was split."""
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS)
    for block in watch_blocks(model.eager(), batch).blocks:
        parts = split(block, both=both)
        rest = constant(block, both)
        for row, encoding in enumerate(batch.encodings):
            size = len(encoding.ids)
            vectors = parts.vectors(row, size, slice(0, size))
            total = vectors.sum(dim=0) + rest[row, :size]
            torch.testing.assert_close(total, parts.whole[row, :size])
            some = parts.vectors(row, size, slice(1, 3))
            torch.testing.assert_close(some, vectors[1:3])
            # Padding adds nothing to what real tokens receive.
            assert not parts.weights[row, size:, :size].any()


def constant(block: Block, both: bool) -> torch.Tensor:
    """Follow biases, and the feed-forward part, through the layer norms."""
    first, second = block.norms
    bias = block.projection.bias.expand_as(block.inputs)
    after = first.linear(bias) / first.spread() + first.bias
    if not both:
        return after
    if block.pre:
        return second.linear(bias + second.inputs - first.inputs) / second.spread() + second.bias
    return second.linear(after + second.inputs - first.outputs) / second.spread() + second.bias


def test_contributions_by_hand() -> None:
    whole = torch.tensor([3.0, 4.0])
    vectors = torch.tensor([[3.0, 4.0], [0.0, 0.0], [3.0, 0.0], [-3.0, 4.0]])
    assert contributions(vectors, whole, 1).tolist() == [7, 0, 3, 1]
    assert contributions(vectors, whole, 2).tolist() == [5, 0, 1, 0]
    assert contributions(vectors, whole, None).tolist() == [5, 0, 3, 5]


def test_rows_are_multiplied_from_the_last_block_down() -> None:
    first, second = torch.tensor([[[1.0, 3], [4, 0]]]), torch.tensor([[[0.0, 0], [2, 1]]])
    # (2, 1) [[1, 3], [4, 0]] = (6, 6)
    assert roll_back([first, second], torch.tensor([1])).tolist() == [[0.5, 0.5]]
    # Nothing contributes to a row of zeros, and nothing is made of it.
    assert roll_back([first, second], torch.tensor([0])).tolist() == [[0, 0]]


@pytest.mark.parametrize("rollout", [True, False])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_value_zeroing_equals_a_loop(
    architecture: str, rollout: bool, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, [TEXTS[2]])
    network = model.eager()
    if architecture == "bert":
        blocks = list(network.bert.encoder.layer)
        projections = [block.attention.self.value for block in blocks]
    else:
        blocks = list(network.transformer.h)
        projections = [block.attn.c_attn for block in blocks]
    size = batch.ids.shape[1]
    usual = states(network, blocks, batch)
    layers = []
    for block, projection, before, after in zip(
        blocks, projections, usual[:-1], usual[1:], strict=True
    ):
        matrix = torch.zeros(size, size, dtype=before.dtype)
        for token in range(size):
            with zeroed(projection, token), torch.no_grad():
                changed = block(before, attention_mask=mask(architecture, before))
            matrix[:, token] = 1 - F.cosine_similarity(changed[0], after[0], dim=-1)
        layers.append(matrix / matrix.sum(dim=1, keepdim=True))
    joint = layers[1] @ layers[0] if rollout else layers[1]
    place = size - 1 if architecture == "gpt2" else 0
    found = ValueZeroing(rollout=rollout)(Session(model), batch)
    torch.testing.assert_close(found[0], joint[place], atol=1e-10, rtol=1e-8)


def states(network: PreTrainedModel, blocks: list[Any], batch: Batch) -> list[torch.Tensor]:
    """Return the input of each block and the output of the last, which ln_f has not touched."""
    seen: list[torch.Tensor] = []
    handles = [b.register_forward_pre_hook(lambda _m, args: seen.append(args[0])) for b in blocks]
    handles.append(blocks[-1].register_forward_hook(lambda _m, _args, out: seen.append(out)))
    with torch.no_grad():
        network(input_ids=batch.ids)
    for handle in handles:
        handle.remove()
    return seen


def mask(architecture: str, state: torch.Tensor) -> torch.Tensor | None:
    """GPT-2 must not look ahead."""
    if architecture == "bert":
        return None
    size = state.shape[1]
    return torch.full((size, size), -torch.inf, dtype=state.dtype).triu(1)[None, None]


@contextmanager
def zeroed(projection: torch.nn.Module, token: int) -> Iterator[None]:
    """Zero what a value projection says of one token; GPT-2's ends with the values."""

    def hook(_module: Any, _args: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, token, -32:] = 0
        return changed

    handle = projection.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("explainer", EXPLAINERS, ids=repr)
def test_a_batch_gives_what_single_examples_give(
    explainer: Any, architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 0])
    found = explainer(Session(model), batch)
    assert found.isfinite().all() and found.dtype == torch.float64
    for row, text in enumerate(TEXTS):
        alone = explainer(Session(model), batch_of(model, [text]))[0]
        torch.testing.assert_close(found[row, : len(alone)], alone, atol=1e-9, rtol=1e-9)
        assert not found[row, len(alone) :].any()
        assert (alone >= 0).all() and alone.sum().item() == pytest.approx(1)


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=repr)
def test_chunks_change_nothing(
    explainer: Any, tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    at_once = explainer(Session(model), batch)
    monkeypatch.setattr(decomposition, "ELEMENTS", 4 * batch.ids.numel() * 32)
    monkeypatch.setattr(decomposition, "TOKENS", 4 * batch.ids.shape[1])
    torch.testing.assert_close(explainer(Session(model), batch), at_once)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_model_is_left_as_found(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture)
    batch, network = batch_of(model, TEXTS), model.eager()
    before = run_capture(network, batch).logits
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.modules()]
    for explainer in (Alti(), ValueZeroing()):
        explainer(Session(model), batch)
    assert torch.equal(run_capture(network, batch).logits, before)
    after = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.modules()]
    assert after == hooks
    assert not network.training and not any(p.requires_grad for p in network.parameters())


def test_passes_are_charged(tiny_model: Any, batch_of: Any) -> None:
    """One row per token through every block is a forward pass; the last of two blocks, half."""
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    for explainer, forwards in (
        (Alti(), 3),
        (ValueZeroing(), 3 + 26),
        (ValueZeroing(rollout=False), 3 + 13),
    ):
        session = Session(model)
        before = session.meter.total
        explainer(session, batch)
        cost = session.meter.since(before)
        assert (cost.forwards, cost.backwards) == (forwards, 0)


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (Alti(variant="glob"), "variant 'glob' is not one of alti, alti-ln2, norm, globenc"),
        (Alti(norm="l3"), "norm 'l3' is not one of l1, l2"),
    ],
)
def test_unknown_settings_are_refused(
    explainer: Alti, message: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model()
    session = Session(model)
    before = session.meter.total
    with pytest.raises(FaithbenchError, match=message):
        explainer(session, batch_of(model, TEXTS))
    assert session.meter.total == before

"""The shorter way gives the network's own logits, and steps aside where it would not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import TokenRow
from faithbench.explainers.passes.capture import embedding_leaf
from faithbench.models import fast_encoder as module
from faithbench.models import packed_linear as dense
from faithbench.models.engine import Engine
from faithbench.models.fast_encoder import (
    CompiledEncoder,
    FastEncoder,
    assemble_encoder,
    fast_encoder,
)
from faithbench.models.host_waits import count_host_waits
from faithbench.models.model import Model
from faithbench.models.packs import Pack
from faithbench.testing import tiny
from tests.support.builders import in_precision


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
@pytest.mark.parametrize(("dtype", "slack"), [(torch.float32, 2e-6), (torch.float64, 1e-14)])
def test_logits_are_those_of_the_network(
    tiny_model, architecture: str, dtype: torch.dtype, slack: float
) -> None:
    model = in_precision(tiny_model(architecture, 3), dtype)
    way = fast_encoder(model)
    assert way is not None
    ids, types, attention = rows(model)
    inputs = {"input_ids": ids, "attention_mask": attention}
    if model.network.config.type_vocab_size > 1:
        inputs["token_type_ids"] = types
    wanted = model.network(**inputs).logits
    for masks in (False, True):  # attention by lengths, as on the CPU, or all rows at once
        torch.testing.assert_close(
            logits_of(replace(way, masks=masks), ids, types, attention), wanted, rtol=0, atol=slack
        )


@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
def test_gradients_are_those_of_the_network(tiny_model, architecture: str) -> None:
    """Two rows of equal tokens, moved apart in embedding space: nothing may be shared."""
    model = tiny_model(architecture, 3)
    way = fast_encoder(model, differentiable=True)
    assert way is not None
    network = model.network
    ids = torch.tensor([[2, 7, 8, 9, 3]] * 2)
    types = torch.zeros_like(ids)
    moved = network.get_input_embeddings()(ids).detach()
    moved = moved + 0.1 * torch.randn(moved.shape, dtype=moved.dtype)
    found = []
    for run in (lambda: way(Pack.even(ids, types)), lambda: network(input_ids=ids).logits):
        with embedding_leaf(network, moved) as leaf:
            logits = run()
            found.append(torch.autograd.grad(logits[:, 1].sum(), leaf[0])[0])
    assert not torch.allclose(found[0][0], found[0][1], atol=1e-4)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize("architecture", ["distilbert", "albert", "gpt2"])
def test_other_architectures_have_none(tiny_model, architecture: str) -> None:
    assert fast_encoder(tiny_model(architecture)) is None


def test_half_precision_and_question_answering_have_none(tiny_model) -> None:
    assert fast_encoder(in_precision(tiny_model(), torch.bfloat16)) is None
    assert fast_encoder(tiny.tiny_model(qa=True)) is None


def test_a_network_in_training_has_none(tiny_model) -> None:
    """Its weights are about to change, and its dropout is at work."""
    model = in_precision(tiny_model(), torch.float32)
    model.network.train()
    assert fast_encoder(model) is None


def test_a_network_that_computes_otherwise_has_none(tiny_model) -> None:
    model = in_precision(tiny_model(), torch.float32)
    model.network.bert.encoder.layer[0].output.register_forward_hook(lambda *parts: 2 * parts[2])
    assert fast_encoder(model) is None


def test_layers_that_are_not_plain_have_none(tiny_model) -> None:
    class Scaled(torch.nn.Linear):
        pass

    model = in_precision(tiny_model(), torch.float32)
    own = model.network.bert.encoder.layer[0].output
    own.dense = Scaled(own.dense.in_features, own.dense.out_features)
    assert fast_encoder(model) is None


@pytest.mark.parametrize("packed", [False, True])
def test_packed_or_not_the_logits_are_the_network_s(
    tiny_model, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    """Packing depends on the processor, so that a machine by itself would test one of the two."""
    if packed and not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this build of PyTorch cannot pack linear layers")
    model = in_precision(tiny_model(), torch.float32)
    monkeypatch.setattr(dense, "packs", lambda weight: packed)
    lean = fast_encoder(model)
    assert lean is not None
    ids, types, attention = rows(model)
    with torch.inference_mode():
        wanted = model.network(input_ids=ids, token_type_ids=types, attention_mask=attention)
    torch.testing.assert_close(
        logits_of(lean, ids, types, attention), wanted.logits, rtol=0, atol=2e-6
    )


def test_the_engine_takes_it(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    model = in_precision(tiny_model(), torch.float32)
    ids, types, _ = (t[0].numpy() for t in rows(model))
    engine = Engine(model)
    monkeypatch.setattr(type(model.network), "forward", None)  # after the probe, never called
    with pytest.raises(TypeError):
        engine.log_probabilities([(ids, types)])
    monkeypatch.undo()
    engine = Engine(model)
    assert engine._fast is not None
    monkeypatch.setattr(type(model.network), "forward", None)
    assert engine.log_probabilities([(ids, types)]).shape == (1, 2)


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "electra"])
def test_the_pass_runs_where_there_are_no_values(
    tiny_model, architecture: str, masks: bool
) -> None:
    """Tensors of the meta device have shapes alone: whoever waits for a value fails there."""
    model = on_meta(tiny_model(architecture, 3))
    way = assemble_encoder(model, differentiable=False)
    assert way is not None and way.masks, "on every device but the CPU"
    some = token_rows(*rows(model))
    logits = replace(way, masks=masks)(way.pack(some))
    assert (logits.shape, logits.device.type) == ((5, 3), "meta")
    even = Pack.even(*(torch.zeros(2, 6, dtype=torch.long, device="meta") for _ in range(2)))
    slow = assemble_encoder(model, differentiable=True)
    assert slow is not None and slow(even).shape == (2, 3)
    with pytest.raises(RuntimeError, match="meta tensors"):
        float(logits.sum())


def test_many_lengths_take_as_few_operations_as_one(tiny_model) -> None:
    """Counted on two blocks, the last of which is computed for one token."""
    model = in_precision(tiny_model(), torch.float32)
    way = fast_encoder(model)
    assert way is not None
    one = [row_of(20, seed) for seed in range(32)]
    many = [row_of(length, length) for length in range(5, 37)]
    counts = {}
    for name, masks, some in (
        ("one length", False, one), ("by length", False, many), ("masked", True, many)
    ):  # fmt: skip
        encoder = replace(way, masks=masks)
        with torch.inference_mode(), count_host_waits() as waits:
            encoder(encoder.pack(some))
        assert waits.count == 0, waits.places
        counts[name] = waits.operations
    assert counts["masked"] <= counts["one length"] + 15
    assert counts["by length"] > 8 * counts["masked"]


@pytest.mark.slow
def test_packs_of_all_sizes_are_compiled_a_few_times(
    tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs: list[object] = []

    def compiler(graph: torch.fx.GraphModule, _inputs: object) -> Callable[..., object]:
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(module, "COMPILER", compiler)
    monkeypatch.setattr(dense, "packs", lambda weight: False)  # as on a GPU
    model = in_precision(tiny_model(), torch.float32)
    plain = fast_encoder(model)
    compiled = fast_encoder(replace(model, compiled=True))
    assert plain is not None and isinstance(compiled, CompiledEncoder)
    # With a mask, as there; some packs have rows of one length.
    plain, compiled = replace(plain, masks=True), replace(compiled, masks=True)
    for lengths in ([5, 9, 9], range(4, 40), [7] * 6, [30, 31], [12] * 3, range(8, 20)):
        pack = plain.pack([row_of(length, seed) for seed, length in enumerate(lengths)])
        with torch.inference_mode():
            assert torch.equal(compiled(pack), plain(pack))
    assert len(graphs) == 2, "with a mask, and without"


def test_what_cannot_be_compiled_is_one_line(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise RuntimeError("no compiler here")

    monkeypatch.setattr(module, "COMPILER", failing)
    compiled = fast_encoder(replace(in_precision(tiny_model(), torch.float32), compiled=True))
    assert compiled is not None
    with pytest.raises(FaithbenchError, match=r"torch.compile failed .*leave --compiled out$"):
        compiled(compiled.pack([row_of(5, 0)]))
    other = replace(tiny_model("gpt2"), compiled=True)
    with pytest.raises(FaithbenchError, match="a gpt2 model in float64 has no pass that is"):
        Engine(other).log_probabilities([row_of(5, 0)])


def row_of(length: int, seed: int) -> TokenRow:
    draw = np.random.default_rng(seed)
    return draw.integers(5, 60, length), np.zeros(length, dtype=np.int64)


def on_meta(model: Model) -> Model:
    """Return the model with weights that have no values."""
    network = copy.deepcopy(model.network).to("meta")
    return replace(model, network=network, _twins={})


def logits_of(
    way: FastEncoder, ids: torch.Tensor, types: torch.Tensor, attention: torch.Tensor
) -> torch.Tensor:
    """Return the logits in the order of the rows."""
    pack = way.pack(token_rows(ids, types, attention))
    with torch.inference_mode():
        return way(pack)[pack.order.argsort()]


def token_rows(ids: torch.Tensor, types: torch.Tensor, attention: torch.Tensor) -> list[TokenRow]:
    """Cut padded rows to their real tokens."""
    return [
        (i[:n].numpy(), t[:n].numpy())
        for i, t, n in zip(ids, types, attention.sum(dim=1).tolist(), strict=True)
    ]


def rows(model: Model) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Five rows of nine tokens: two alike but for one token, one padded, one of two segments."""
    draw = torch.Generator().manual_seed(3)
    ids = torch.randint(5, int(model.network.config.vocab_size), (5, 9), generator=draw)
    ids[1] = ids[0]
    ids[1, 4] = int(model.tokenizer.mask_token_id)
    attention, types = torch.ones_like(ids), torch.zeros_like(ids)
    ids[2, 6:] = int(model.network.config.pad_token_id)
    attention[2, 6:] = 0
    types[3, 5:] = 1
    return ids, types, attention

"""The forward pass of training: what is captured, and that it is part of the graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.models.encoding import encode, inputs_of
from faithbench.models.model import Model
from faithbench.testing import tiny
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingBatch, TrainingItem, collate_items

NOTHING: frozenset[Any] = frozenset()


def batch_of(model: Model) -> TrainingBatch:
    texts = ("good film", "the plot is dull")
    items = [TrainingItem(encode(model, Example(t, t, n)), (n,)) for n, t in enumerate(texts)]
    return collate_items(model, items, None)


def test_without_captures_there_are_logits_alone() -> None:
    model = tiny.tiny_model()
    batch = batch_of(model)
    before = model.network.config._attn_implementation
    make_readable(model, NOTHING)
    assert model.network.config._attn_implementation == before
    seen = forward(model, batch, NOTHING)
    plain = model.network(**inputs_of(model.network, batch.ids, batch.types, batch.attention))
    assert torch.equal(seen.logits[0], plain.logits)
    assert seen.attentions == () and seen.levels == {}


def test_attentions_are_probabilities() -> None:
    model = tiny.tiny_model()
    captures: frozenset[Any] = frozenset({"attentions"})
    make_readable(model, captures)
    batch = batch_of(model)
    seen = forward(model, batch, captures)
    assert [tuple(a.shape) for a in seen.attentions] == [(2, 4, 6, 6)] * 2
    torch.testing.assert_close(
        seen.attentions[-1].sum(dim=-1), torch.ones_like(seen.attentions[0][..., 0])
    )
    assert (seen.attentions[-1][0, :, :, 4:] == 0).all(), "the first text is two tokens shorter"


@pytest.mark.parametrize("trained", [False, True], ids=["frozen words", "trained words"])
def test_gradients_at_the_levels_can_be_trained_on(trained: bool) -> None:
    """Also where no weight of the embeddings is trained, as under an adapter."""
    model = tiny.tiny_model()
    captures: frozenset[Any] = frozenset({"levels"})
    make_readable(model, captures)
    words = model.network.get_input_embeddings().weight
    words.requires_grad_(trained)
    head = model.network.classifier.weight.requires_grad_()
    seen = forward(model, batch_of(model), captures)
    assert set(seen.levels) == {"word", "intermediate"}
    levels = list(seen.levels.values())
    gradients = torch.autograd.grad(seen.logits[0][:, 1].sum(), levels, create_graph=True)
    assert all(tuple(g.shape) == (2, 6, 32) and g.abs().max() > 0 for g in gradients)
    second = torch.autograd.grad(sum(g.square().sum() for g in gradients), head)
    assert second[0].abs().max() > 0


def test_a_model_without_attention_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny.tiny_model()
    captures: frozenset[Any] = frozenset({"attentions"})
    plain = model.network.forward
    monkeypatch.setattr(
        model.network, "forward", lambda output_attentions, **inputs: plain(**inputs)
    )
    with pytest.raises(
        FaithbenchError, match="a bert model gives no attention, which an objective"
    ):
        forward(model, batch_of(model), captures)

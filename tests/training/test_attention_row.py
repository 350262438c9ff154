"""The row of attention that a classifier reads: the first token's, the last one's, or a query's."""

from __future__ import annotations

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.testing import tiny
from faithbench.training.attention_row import AttentionRow
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingItem, collate_items

CAPTURES = frozenset({"attentions"})
TEXTS = ("good film", "the plot is very dull and bad", "a")


def items_of(model: Model) -> list[TrainingItem]:
    return [TrainingItem(encode(model, Example(text, text, 0)), (0,)) for text in TEXTS]


@pytest.mark.parametrize(
    ("architecture", "reads_last"),
    [("bert", False), ("distilbert", False), ("gpt2", True), ("bilstm", False),
     ("transformer", False)],
)  # fmt: skip
def test_it_is_the_row_of_the_last_block_that_the_logits_depend_on(
    architecture: str, reads_last: bool
) -> None:
    """Padding or not: the gradient of the logits at all other rows of attention is 0."""
    model = tiny.tiny_model(architecture)
    make_readable(model, CAPTURES)
    items = items_of(model)
    assert AttentionRow.of(model, items[1]) == AttentionRow(reads_last)
    batch = collate_items(model, items, None)
    with torch.enable_grad():
        model.network.get_input_embeddings().weight.requires_grad_()
        seen = forward(model, batch, CAPTURES)
        (gradient,) = torch.autograd.grad(seen.logits[0].sum(), seen.attentions[-1])
    read = AttentionRow(reads_last).read(seen.attentions, batch.attention)
    assert read.shape == batch.ids.shape
    torch.testing.assert_close(read.sum(dim=1), torch.ones(3, dtype=read.dtype))
    for row in range(3):
        position = int(gradient[row].norm(dim=(0, 2)).argmax())
        expected = seen.attentions[-1][row].mean(dim=0)[position]
        torch.testing.assert_close(read[row], expected, rtol=0, atol=0)
    assert (read[0, batch.attention[0] == 0] == 0).all(), "padding is not attended to"


def test_heads_are_averaged_by_hand() -> None:
    """Two heads over three tokens, of which the second text has two."""
    real = torch.tensor([[1, 1, 1], [1, 1, 0]])
    first = torch.zeros(2, 2, 3, 3)
    last = torch.arange(36.0).reshape(2, 2, 3, 3)  # the rows of a head start 3 apart, heads 9
    assert AttentionRow(False).read((first, last), real).tolist() == [
        [4.5, 5.5, 6.5],
        [22.5, 23.5, 24.5],
    ]
    assert AttentionRow(True).read((first, last), real).tolist() == [
        [10.5, 11.5, 12.5],
        [25.5, 26.5, 27.5],
    ]


@pytest.mark.parametrize("training", [True, False])
def test_a_network_stays_in_training(training: bool) -> None:
    model = tiny.tiny_model("bilstm")
    model.network.train(training)
    AttentionRow.of(model, items_of(model)[0])
    assert model.network.training is training


def test_a_network_without_attention_is_refused() -> None:
    model = tiny.tiny_model("cnn")
    with pytest.raises(FaithbenchError, match="a cnn model gives no attention, which an objective"):
        AttentionRow.of(model, items_of(model)[0])

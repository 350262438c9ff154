"""The convolutional networks: by hand, without padding in their maxima, and with a query."""

from __future__ import annotations

import pytest
import torch

from faithbench.models.architectures.cnn import CnnConfig, CnnForSequenceClassification


def network(**changes: object) -> CnnForSequenceClassification:
    torch.manual_seed(0)
    sizes = {"vocab_size": 12, "hidden_size": 6, "max_position_embeddings": 9, "num_labels": 2}
    made = CnnForSequenceClassification(CnnConfig(**(sizes | changes)))
    return made.double().eval()


def test_the_levels_by_hand() -> None:
    net = network()
    ids = torch.tensor([[3, 4, 5, 6]])
    out = net(ids, output_levels=True)
    assert out.levels is not None
    words = net.embeddings(ids)[0]
    narrow, wide = net.convolutions
    for position in range(4):
        sums = []
        for convolution, reach in ((narrow, 1), (wide, 2)):
            total = convolution.bias.clone()
            for offset in range(-reach, reach + 1):
                if 0 <= position + offset < 4:
                    total = (
                        total + convolution.weight[:, :, offset + reach] @ words[position + offset]
                    )
            sums.append(total)
        expected = torch.maximum(*sums).clamp(min=0)
        torch.testing.assert_close(out.levels["intermediate"][0, position], expected)
    intermediate = out.levels["intermediate"][0]
    torch.testing.assert_close(out.levels["decision"][0], intermediate.max(dim=1).values)
    seen = torch.cat([intermediate.max(dim=0).values, out.levels["decision"][0], torch.zeros(5)])
    logits = net.classifier(torch.relu(net.hidden(seen)))
    torch.testing.assert_close(out.logits[0], logits)


def test_levels_are_part_of_the_graph_and_come_on_demand() -> None:
    net = network()
    ids = torch.tensor([[3, 4, 5, 6]])
    out = net(ids, output_levels=True, output_hidden_states=True)
    gradients = torch.autograd.grad(out.logits[0, 1], list(out.levels.values()))
    assert [tuple(g.shape) for g in gradients] == [(1, 4, 6), (1, 4, 6), (1, 4)]
    assert all(g.abs().sum() > 0 for g in gradients)
    assert out.hidden_states[0] is out.levels["word"] and out.attentions is None
    assert net(ids).levels is None and net(ids).hidden_states is None


@pytest.mark.parametrize("query", [False, True])
def test_padding_changes_neither_logits_nor_gradients(query: bool) -> None:
    net = network(query=query)
    ids, types = torch.tensor([[3, 4, 5, 6, 7]]), torch.tensor([[0, 0, 0, 1, 1]])
    padded, mask = torch.tensor([[3, 4, 5, 6, 7, 0, 0]]), torch.tensor([[1, 1, 1, 1, 1, 0, 0]])
    # Padding with a vector of its own would show if it were read.
    with torch.no_grad():
        net.embeddings.weight[0] = 5.0
    alone = net(ids, None, types, output_levels=True)
    batched = net(padded, mask, torch.tensor([[0, 0, 0, 1, 1, 0, 0]]), output_levels=True)
    torch.testing.assert_close(alone.logits, batched.logits)
    for name in alone.levels:
        one = torch.autograd.grad(alone.logits[0, 0], alone.levels[name], retain_graph=True)[0]
        two = torch.autograd.grad(batched.logits[0, 0], batched.levels[name], retain_graph=True)[0]
        torch.testing.assert_close(one, two[:, :5])
        assert name == "decision" or two[:, 5:].abs().max() == 0


def test_a_query_multiplies_the_intermediate_representation() -> None:
    net, ids = network(query=True), torch.tensor([[3, 4, 5, 6, 7]])
    types = torch.tensor([[0, 0, 0, 1, 1]])
    with_query = net(ids, None, types, output_levels=True).levels["intermediate"][0]
    without = net(ids[:, :3], output_levels=True).levels["intermediate"][0]
    narrow, wide = net.query_convolutions
    signal = net.embeddings(ids[:, 3:]).transpose(1, 2)
    query = torch.maximum(narrow(signal), wide(signal)).clamp(min=0)[0].max(dim=1).values
    assert query.max() > 0
    torch.testing.assert_close(with_query[:3], without * query)
    assert with_query[3:].abs().max() == 0, "the query is no part of the text"
    assert net.config.type_vocab_size == 2 and network().config.type_vocab_size == 1


def test_a_text_of_nothing_is_read_without_an_error() -> None:
    net = network(query=True)
    out = net(torch.tensor([[6, 7]]), None, torch.tensor([[1, 1]]), output_levels=True)
    assert torch.isfinite(out.logits).all()
    assert out.levels["decision"].abs().max() == 0


def test_embeddings_in_place_of_ids() -> None:
    net, ids = network(), torch.tensor([[3, 4, 5]])
    table = net.get_input_embeddings()
    torch.testing.assert_close(net(inputs_embeds=table(ids)).logits, net(ids).logits)
    net.set_input_embeddings(torch.nn.Embedding(4, 6).double())
    assert net.embeddings.weight.shape == (4, 6)

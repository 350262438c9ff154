"""The attentive networks: by hand, without a trace of padding, and with gradients of attention."""

from __future__ import annotations

import math

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.architectures.attentive import (
    AttentiveNetwork,
    BilstmConfig,
    BilstmForSequenceClassification,
    TransformerConfig,
    TransformerForSequenceClassification,
    sinusoids,
)

NETWORKS = {
    "bilstm": (BilstmForSequenceClassification, BilstmConfig),
    "transformer": (TransformerForSequenceClassification, TransformerConfig),
}
PROJECTIONS = ("softmax", "sparsemax", "entmax15", "sparsegen:0.5")


def network(name: str, projection: str = "softmax") -> AttentiveNetwork:
    torch.manual_seed(0)
    made, config = NETWORKS[name]
    sizes = {"vocab_size": 12, "embedding_size": 5, "hidden_size": 8, "num_labels": 3}
    return made(config(**sizes, projection=projection)).double().eval()


def test_the_states_of_a_bilstm_are_those_of_both_directions() -> None:
    net = network("bilstm")
    both = torch.nn.LSTM(5, 8, batch_first=True, bidirectional=True).double()
    for name, value in net.onward.named_parameters():
        getattr(both, name).data = value.data
        getattr(both, f"{name}_reverse").data = net.back.get_parameter(name).data
    ids = torch.tensor([[3, 4, 5, 6]])
    out = net(ids, output_hidden_states=True, output_attentions=True)
    words, states = out.hidden_states
    torch.testing.assert_close(words, net.embeddings(ids), rtol=0, atol=0)
    torch.testing.assert_close(states, both(words)[0], rtol=0, atol=1e-14)
    hidden = torch.tanh(states[0] @ net.attention.weight.T + net.attention.bias)
    attention = (hidden @ net.query.weight[0]).softmax(dim=0)
    torch.testing.assert_close(out.attentions[0], attention[None, None, None])
    torch.testing.assert_close(out.logits[0], net.classifier(attention @ states[0]))


def test_the_block_of_a_transformer_is_torch_s_own() -> None:
    net = network("transformer")
    layer = torch.nn.TransformerEncoderLayer(8, 4, 32, batch_first=True).double().eval()
    inside = layer.self_attn
    inside.in_proj_weight.data = torch.cat([m.weight for m in (net.ask, net.key, net.value)]).data
    inside.in_proj_bias.data = torch.cat([m.bias for m in (net.ask, net.key, net.value)]).data
    pairs = (
        (inside.out_proj, net.out), (layer.linear1, net.inner), (layer.linear2, net.outer),
        (layer.norm1, net.first_norm), (layer.norm2, net.second_norm),
    )  # fmt: skip
    for theirs, ours in pairs:
        theirs.load_state_dict(ours.state_dict())
    ids = torch.tensor([[3, 4, 5, 6]])
    out = net(ids, output_hidden_states=True, output_attentions=True)
    wide = net.widen(net.embeddings(ids)) * math.sqrt(8)
    states = layer(wide + sinusoids(wide))
    torch.testing.assert_close(out.hidden_states[1], states, rtol=0, atol=1e-12)
    attention = (states[0] @ net.query / math.sqrt(8)).softmax(dim=0)
    torch.testing.assert_close(out.attentions[0], attention[None, None, None])
    torch.testing.assert_close(out.logits[0], net.classifier(attention @ states[0]))


def test_positions_are_sines_and_cosines_of_falling_frequency() -> None:
    found = sinusoids(torch.zeros(1, 3, 4, dtype=torch.float64))
    assert found[0].tolist() == [0, 1, 0, 1]
    assert found[2].tolist() == pytest.approx(
        [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)]
    )


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_padding_changes_neither_logits_nor_gradients(name: str, projection: str) -> None:
    net = network(name, projection)
    # Padding with a vector of its own would show if it were read.
    net.embeddings.weight.data[0] = 3.0
    ids = torch.tensor([[3, 4, 5, 6, 7, 8, 9], [3, 8, 5, 0, 0, 0, 0], [9, 0, 0, 0, 0, 0, 0]])
    out = net(ids, (ids != 0).long(), output_attentions=True)
    gradient = torch.autograd.grad(out.logits[:, 0].sum(), net.embeddings.weight)[0]
    assert gradient[0].abs().max() == 0 and gradient[3:10].abs().min(dim=1).values.sum() > 0
    alone = torch.zeros_like(gradient)
    for row, size in enumerate((7, 3, 1)):
        single = net(ids[row : row + 1, :size], output_attentions=True)
        torch.testing.assert_close(single.logits[0], out.logits[row], rtol=0, atol=1e-13)
        whole = out.attentions[0][row, 0, 0]
        torch.testing.assert_close(single.attentions[0][0, 0, 0], whole[:size], rtol=0, atol=1e-13)
        assert (whole[size:] == 0).all()
        alone += torch.autograd.grad(single.logits[0, 0], net.embeddings.weight)[0]
    torch.testing.assert_close(gradient, alone, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_row_without_words_has_the_logits_of_the_bias(name: str) -> None:
    net = network(name, "sparsemax")
    out = net(torch.tensor([[3, 4], [0, 0]]), torch.tensor([[1, 1], [0, 0]]))
    assert torch.equal(out.logits[1], net.classifier.bias)


@pytest.mark.parametrize("name", NETWORKS)
def test_attention_and_states_are_part_of_the_graph_and_come_on_demand(name: str) -> None:
    net = network(name)
    ids = torch.tensor([[3, 4, 5, 6]])
    out = net(ids, output_attentions=True, output_hidden_states=True)
    assert out.attentions[0].shape == (1, 1, 1, 4)
    wanted = (*out.hidden_states, *out.attentions)
    gradients = torch.autograd.grad(out.logits[0, 1], wanted)
    assert all(g.abs().sum() > 0 for g in gradients)
    # The logit is linear in attention, so its gradient is what each h adds to it.
    expected = out.hidden_states[1][0] @ net.classifier.weight[1]
    torch.testing.assert_close(gradients[2][0, 0, 0], expected)
    assert net(ids).attentions is None and net(ids).hidden_states is None


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_of_gradients(name: str, projection: str) -> None:
    net = network(name, projection)
    words = net.embeddings(torch.tensor([[3, 4, 5], [6, 7, 0]])).detach().requires_grad_()
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])

    def logits(words: torch.Tensor) -> torch.Tensor:
        return net(inputs_embeds=words, attention_mask=mask).logits[:, :1]

    assert torch.autograd.gradcheck(logits, words)
    assert torch.autograd.gradgradcheck(logits, words, atol=1e-4)


def test_a_bad_projection_is_refused_with_its_configuration() -> None:
    with pytest.raises(FaithbenchError, match="'sparsegen:1' needs a lambda below 1"):
        BilstmConfig(projection="sparsegen:1")
    assert TransformerConfig(projection="sparsegen:.50").projection == "sparsegen:0.5"


@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_h_decide_as_the_network_does(name: str, projection: str) -> None:
    """From h on: logits and attention of a pass; an h that is left out is as one never there."""
    net = network(name, projection)
    ids = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0]])
    there = ids != 0
    out = net(ids, there.long(), output_attentions=True, output_hidden_states=True)
    states = out.hidden_states[1]
    logits, attention = net.decide(states, there)
    assert torch.equal(logits, out.logits) and torch.equal(attention, out.attentions[0])
    kept = torch.tensor([0, 1, 3, 4])
    without = there & (torch.arange(5) != 2)
    less, shifted = net.decide(states, without)
    alone, weights = net.decide(states[:1, kept], there[:1, kept])
    torch.testing.assert_close(less[:1], alone, rtol=0, atol=1e-14)
    torch.testing.assert_close(shifted[:1, ..., kept], weights, rtol=0, atol=1e-14)
    assert shifted[0, 0, 0, 2] == 0 and shifted[0].sum().item() == pytest.approx(1)


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_under_an_attention_that_is_given(name: str) -> None:
    """On one word they are those of its h; they are linear in attention, but for the bias."""
    net = network(name)
    ids = torch.tensor([[3, 4, 5], [6, 7, 8]])
    out = net(ids, output_attentions=True, output_hidden_states=True)
    states = out.hidden_states[1]
    own = out.attentions[0]
    torch.testing.assert_close(net.classify(states, own), out.logits, rtol=0, atol=1e-14)
    corner = torch.eye(3, dtype=states.dtype)[[1, 2]][:, None, None]
    picked = torch.stack([states[0, 1], states[1, 2]])
    there = net.classify(states, corner)
    torch.testing.assert_close(there, net.classifier(picked), rtol=0, atol=1e-14)
    half = net.classify(states, (own + corner) / 2)
    torch.testing.assert_close(half, (out.logits + there) / 2, rtol=0, atol=1e-13)

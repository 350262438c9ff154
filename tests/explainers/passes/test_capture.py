"""The recorded pass: its gradients by other means, its sharing, and the network left as it was."""

from __future__ import annotations

import time
import weakref
from types import SimpleNamespace

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import (
    Capture,
    capture,
    capture_gradients,
    capture_square,
    check_square,
    readable,
    run_capture,
)
from faithbench.models.meter import Cost
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session

TEXTS = ["good film", "the plot is not very dull, and not great", "bad"]
TARGETS = [0, 1, 1]


@pytest.fixture
def model(tiny_model) -> Model:
    return tiny_model("bert", 2)


@pytest.fixture
def batch(model: Model, batch_of) -> Batch:
    return batch_of(model, TEXTS, TARGETS)


@pytest.fixture
def seen(model: Model, batch: Batch) -> Capture:
    return run_capture(model.eager(), batch)


def test_shapes(seen: Capture) -> None:
    """Three examples, at most twelve tokens, two blocks of four heads, width 32."""
    assert seen.logits.shape == (3, 2)
    assert seen.embeddings.shape == seen.embedding_gradients.shape == (3, 12, 32)
    assert [h.shape for h in (*seen.hidden, *seen.hidden_gradients)] == [(3, 12, 32)] * 6
    assert [a.shape for a in (*seen.attentions, *seen.attention_gradients)] == [(3, 4, 12, 12)] * 4
    assert not any(t.requires_grad for t in (seen.logits, seen.embeddings, *seen.hidden))


def test_values_are_those_of_a_plain_pass(model: Model, batch: Batch, seen: Capture) -> None:
    with torch.no_grad():
        logits = model.network(batch.ids, batch.attention, batch.types).logits
    assert_close(seen.logits, logits)
    assert_close(seen.embeddings, model.network.bert.embeddings.word_embeddings(batch.ids))
    for attention in seen.attentions:
        assert_close(attention.sum(-1), torch.ones(3, 4, 12, dtype=torch.float64))
        assert attention[2, :, :, 3:].abs().max() == 0, "padding is not attended to"


def test_embedding_gradients_by_autograd(model: Model, batch: Batch, seen: Capture) -> None:
    leaf = seen.embeddings.clone().requires_grad_()
    (expected,) = torch.autograd.grad(target_logits(model, batch, leaf).sum(), leaf)
    assert_close(seen.embedding_gradients, expected)
    assert seen.embedding_gradients[0, 4:].abs().max() == 0, "padding has no gradient"


def test_embedding_gradients_by_differences(model: Model, batch: Batch, seen: Capture) -> None:
    direction, step = random_like(seen.embeddings), 1e-5
    with torch.no_grad():
        ahead = target_logits(model, batch, seen.embeddings + step * direction)
        behind = target_logits(model, batch, seen.embeddings - step * direction)
    slope = (seen.embedding_gradients * direction).sum(dim=(1, 2))
    assert slope.abs().min() > 1e-2
    torch.testing.assert_close(slope, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("block", [0, 1, 2])
def test_hidden_gradients_by_differences(
    model: Model, batch: Batch, seen: Capture, block: int
) -> None:
    """Boundary 0 is the embedding output, boundary k the output of block k."""
    bert, step = model.network.bert, 1e-5
    module = bert.embeddings if block == 0 else bert.encoder.layer[block - 1]
    direction = random_like(seen.hidden[block])
    found = []
    for shift in (step, -step):
        handle = module.register_forward_hook(lambda *a, s=shift: a[2] + s * direction)
        with torch.no_grad():
            found.append(target_logits(model, batch, seen.embeddings))
        handle.remove()
    slope = (seen.hidden_gradients[block] * direction).sum(dim=(1, 2))
    assert slope.abs().max() > 1e-2
    torch.testing.assert_close(slope, (found[0] - found[1]) / (2 * step), rtol=1e-6, atol=1e-8)


def test_last_attention_gradients_by_hand(model: Model, batch: Batch, seen: Capture) -> None:
    """From the last block's attention matrix on, spelled out."""
    network = model.eager()
    layer, below = network.bert.encoder.layer[-1], seen.hidden[-2]
    weights = seen.attentions[-1].clone().requires_grad_()
    values = layer.attention.self.value(below).view(3, 12, 4, 8).transpose(1, 2)
    context = (weights @ values).transpose(1, 2).reshape(3, 12, 32)
    attended = layer.attention.output(context, below)
    last = layer.output(layer.intermediate(attended), attended)
    logits = network.classifier(network.bert.pooler(last))
    assert_close(last, seen.hidden[-1])
    assert_close(logits, seen.logits)
    (expected,) = torch.autograd.grad(logits.gather(1, batch.targets[:, None]).sum(), weights)
    assert_close(seen.attention_gradients[-1], expected)
    assert expected.abs().max() > 1e-3


def test_an_example_does_not_depend_on_its_neighbours(
    model: Model, batch_of, seen: Capture
) -> None:
    alone = run_capture(model.eager(), batch_of(model, TEXTS[:1], TARGETS[:1]))
    assert_close(alone.embedding_gradients[0], seen.embedding_gradients[0, :4])
    assert_close(alone.attention_gradients[0][0], seen.attention_gradients[0][0, :, :4, :4])


@pytest.mark.parametrize(
    ("architecture", "position"),
    [("bert", [0, 0, 0]), ("roberta", [0, 0, 0]), ("gpt2", [3, 11, 2])],
)
def test_position_is_the_token_that_the_classifier_reads(
    tiny_model, batch_of, architecture: str, position: list[int]
) -> None:
    """The first token, or GPT-2's last real one: lengths are 4, 12 and 3."""
    model = tiny_model(architecture)
    seen = run_capture(model.eager(), batch_of(model, TEXTS, TARGETS))
    assert seen.position.tolist() == position
    read = seen.hidden_gradients[-1].abs().amax(dim=-1)
    others = torch.ones(3, 12, dtype=torch.bool)
    others[torch.arange(3), seen.position] = False
    assert read[others].max() == 0
    assert read[~others].min() > 0


def test_a_second_reader_shares_the_pass_and_pays_for_it(model: Model, batch: Batch) -> None:
    session = Session(model)
    session.drop_passes()
    start = session.meter.total
    clock = time.perf_counter()
    first = capture(session, batch)
    elapsed = time.perf_counter() - clock
    assert session.meter.since(start) == Cost(forwards=3, backwards=3, passes=1)
    middle = session.meter.total
    assert capture(session, batch) is first
    paid = session.meter.since(middle)
    assert (paid.forwards, paid.backwards, paid.passes) == (3, 3, 1)
    assert 0 < paid.shared_seconds <= elapsed
    session.drop_passes()
    before = session.meter.total
    again = capture(session, batch)
    assert again is not first
    assert session.meter.since(before) == Cost(forwards=3, backwards=3, passes=1)
    assert_close(again.embedding_gradients, first.embedding_gradients)
    session.drop_passes()
    session.drop_passes()  # once too often does no harm


def test_another_batch_is_another_pass(model: Model, batch: Batch, batch_of) -> None:
    session = Session(model)
    first = capture(session, batch)
    other = batch_of(model, TEXTS, [1 - target for target in TARGETS])
    assert_close(capture(session, other).embeddings, first.embeddings)
    assert (
        capture(session, other).embedding_gradients - first.embedding_gradients
    ).abs().max() > 0.1
    assert capture(session, batch) is first, "passes are held until they are released"
    session.drop_passes()


def test_a_shared_pass_keeps_its_batch(model: Model, batch_of) -> None:
    """A freed batch's place in memory, and so its id, is soon another's."""
    batch = batch_of(model, TEXTS, TARGETS)
    held = weakref.ref(batch)
    session = Session(model)
    capture(session, batch)
    del batch
    assert held() is not None
    session.drop_passes()
    assert held() is None


def test_models_do_not_share_with_each_other(model: Model, tokenizer, batch: Batch) -> None:
    other = Session(build_model("other", model.network, tokenizer, labels=model.labels))
    session = Session(model)
    first, second = capture(session, batch), capture(other, batch)
    assert first is not second
    assert capture(session, batch) is first and capture(other, batch) is second
    session.drop_passes()
    assert capture(other, batch) is second


def test_the_network_is_left_as_it_was(model: Model, batch: Batch) -> None:
    network = model.eager()
    with torch.no_grad():
        before = network(batch.ids, batch.attention, batch.types).logits
    hooks = count_hooks(network)
    run_capture(network, batch)
    assert count_hooks(network) == hooks
    with torch.no_grad():
        assert torch.equal(network(batch.ids, batch.attention, batch.types).logits, before)
    assert not any(p.requires_grad or p.grad is not None for p in network.parameters())


def test_a_pass_that_fails_leaves_no_hook(model: Model, batch_of) -> None:
    network = model.eager()
    hooks = count_hooks(network)
    with pytest.raises(RuntimeError, match="out of bounds"):
        run_capture(network, batch_of(model, ["good"], [7]))
    assert count_hooks(network) == hooks


def test_fused_attention_cannot_be_read(
    model: Model, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "a bert model gives no attention matrices; choose a gradient or perturbation explainer"
    for attentions in (None, (), (None, None)):
        out = SimpleNamespace(attentions=attentions, hidden_states=(batch.ids,))
        with pytest.raises(FaithbenchError, match=said):
            readable(model.network, out)
    network = model.eager()
    expected = run_capture(network, batch).embedding_gradients
    forward = network.forward

    def blind(**inputs: object) -> object:
        out = forward(**inputs)
        out.attentions = None
        return out

    monkeypatch.setattr(network, "forward", blind)
    with Session(model) as session:
        with pytest.raises(FaithbenchError, match=said):
            capture(session, batch)
        seen = capture_gradients(session, batch)
    assert (seen.attentions, seen.attention_gradients, seen.hidden) == ((), (), ())
    assert_close(seen.embedding_gradients, expected)


@pytest.mark.parametrize("architecture", ["bilstm", "transformer"])
def test_one_query_is_the_position_and_has_no_square(
    tiny_model, batch_of, architecture: str
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, TARGETS)
    with Session(model) as session:
        seen = capture(session, batch)
        assert seen.position.tolist() == [0, 0, 0]
        assert [tuple(a.shape) for a in seen.attentions] == [(3, 1, 1, 12)]
        # The context is attention times h, and the logit is linear in it.
        weights = model.network.classifier.weight[batch.targets]
        expected = (seen.hidden[-1] * weights[:, None]).sum(dim=-1)
        assert_close(seen.attention_gradients[0][:, 0, 0], expected)
        said = f"a {architecture} model has no square attention, of every token to every token; "
        for texts in (TEXTS, ["good"]):
            with pytest.raises(FaithbenchError, match=said):
                capture_square(session, batch_of(model, texts))


def test_square_attention_is_checked_by_its_shape(model: Model, batch: Batch) -> None:
    with Session(model) as session:
        assert capture_square(session, batch) is capture(session, batch)
    with pytest.raises(FaithbenchError, match="a bert model gives no attention matrices"):
        check_square(model.network, None)
    with pytest.raises(FaithbenchError, match="a bert model has no square attention"):
        check_square(model.network, [torch.zeros(1, 4, 6, 6), torch.zeros(1, 4, 6, 3)])


def target_logits(model: Model, batch: Batch, embeddings: torch.Tensor) -> torch.Tensor:
    """Return each example's target logit, from word embeddings and with fused attention."""
    logits = model.network(
        inputs_embeds=embeddings, attention_mask=batch.attention, token_type_ids=batch.types
    ).logits
    return logits.gather(1, batch.targets[:, None])[:, 0]


def random_like(tensor: torch.Tensor) -> torch.Tensor:
    draw = torch.Generator().manual_seed(1)
    return torch.randn(tensor.shape, generator=draw, dtype=tensor.dtype)


def count_hooks(network: torch.nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in network.modules())


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)

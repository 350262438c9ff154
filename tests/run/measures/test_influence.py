"""Influence on predictions and on h: against stored values and against plain code, text by text."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import CannotServeError, FaithbenchError
from faithbench.core.types import Encoding, Example
from faithbench.metrics.influence import Influence, influence_values
from faithbench.models.encoding import encode
from faithbench.models.model import Model, build_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.measures import influence
from faithbench.run.measures.influence import measure_influence
from faithbench.testing import tiny
from tests.support.architectures import reference_network
from tests.support.cases import row_encoding
from tests.support.paths import GOLDEN

STORED: dict[str, dict[str, Any]] = json.loads((GOLDEN / "metrics/influence.json").read_text())
TEXTS = ("good film", "the plot is not very goodly and dull", "a", "bad , bad plot")
NETWORKS = (
    ("bilstm", "softmax"),
    ("bilstm", "sparsemax"),
    ("bilstm", "sparsegen:0.9"),
    ("transformer", "softmax"),
    ("transformer", "sparsemax"),
    ("bert", "softmax"),
)


@cache
def tiny_network(architecture: str, projection: str = "softmax") -> Model:
    """Return a model of 3 classes whose sparse attention leaves some words out."""
    model = tiny.tiny_model(architecture, 3, projection=projection)
    if architecture == "bilstm":
        # The scores of random networks are too close to each other to be cut.
        model.network.query.weight.data *= 8
    return model


def encodings_of(model: Model, texts: tuple[str, ...] = TEXTS) -> list[Encoding]:
    return [encode(model, Example(f"e{n}", text, 0)) for n, text in enumerate(texts)]


def measured(
    model: Model, encodings: list[Encoding], **options: int
) -> tuple[list[Influence], list[int]]:
    """Return the influences of texts, and the classes whose probability was followed."""
    with Session(model) as session:
        predicted = predictions(session.engine, encodings)
        found = measure_influence(session, encodings, predicted, **options)
    return found, [int(one.target) for one in predicted]


class Straight:
    """One text through a network, without a batch, its embeddings a leaf of the graph."""

    def __init__(self, model: Model, ids: np.ndarray) -> None:
        self.network: Any = model.eager()
        self.words = self.network.get_input_embeddings()(torch.tensor(ids)[None]).detach()
        self.words.requires_grad_()
        out = self.network(
            inputs_embeds=self.words, output_attentions=True, output_hidden_states=True
        )
        self.attention = out.attentions[-1][0].mean(dim=0)[0]
        self.h = out.hidden_states[-2 if model.network.config.model_type == "bert" else -1]
        self.f = out.logits.softmax(dim=-1)[0]

    def norms(self, value: torch.Tensor, at: torch.Tensor) -> np.ndarray:
        (gradient,) = torch.autograd.grad(value, at, retain_graph=True)
        return gradient[0].norm(dim=-1).numpy()


def close(found: Any, expected: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("architecture", "projection"), NETWORKS)
def test_attention_and_gradients_are_those_of_each_text_alone(
    architecture: str, projection: str
) -> None:
    model = tiny_network(architecture, projection)
    encodings = encodings_of(model)
    found, targets = measured(model, encodings)
    for encoding, text, target in zip(encodings, found, targets, strict=True):
        alone = Straight(model, encoding.ids)
        assert int(alone.f.argmax()) == target
        close(text.attention, alone.attention.detach()[encoding.erasable])
        f = alone.f[target]
        close(text.input_gradient, alone.norms(f, alone.words)[encoding.erasable])
        close(text.state_gradient, alone.norms(f, alone.h)[encoding.erasable])
    if projection != "softmax":
        assert 0 < np.mean(found[1].attention == 0) < 1, "the long text is read in part"


@pytest.mark.parametrize(("architecture", "projection"), NETWORKS)
def test_repeated_rows_give_the_gradients_of_a_pass_per_position(
    architecture: str, projection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eq. 5: d |h_p| / d x_i, in parts of 5 rows that are cut across texts."""
    monkeypatch.setattr(influence, "ROWS", 5)
    model = tiny_network(architecture, projection)
    encodings = encodings_of(model)
    found, _ = measured(model, encodings)
    for encoding, text in zip(encodings, found, strict=True):
        alone = Straight(model, encoding.ids)
        places = np.flatnonzero(encoding.erasable)
        assert text.positions.tolist() == list(range(len(places)))
        expected = [alone.norms(alone.h[0, place].norm(), alone.words)[places] for place in places]
        close(text.on_states, np.stack(expected))
        assert text.on_states.min() > 0


@pytest.mark.parametrize(("architecture", "projection"), NETWORKS)
def test_a_word_is_removed_by_deleting_it(architecture: str, projection: str) -> None:
    """Eq. 6 at x: |f - f without it|."""
    model = tiny_network(architecture, projection)
    encodings = encodings_of(model)
    found, targets = measured(model, encodings)
    for encoding, text, target in zip(encodings, found, targets, strict=True):
        whole = Straight(model, encoding.ids).f[target].item()
        expected = [
            abs(whole - Straight(model, np.delete(encoding.ids, place)).f[target].item())
            for place in np.flatnonzero(encoding.erasable)
        ]
        assert min(expected) > influence.TINY
        close(text.input_change, expected)


@pytest.mark.parametrize(("architecture", "projection"), NETWORKS[:-1])
def test_an_h_is_removed_by_leaving_it_out_of_the_projection(
    architecture: str, projection: str
) -> None:
    """Eq. 6 at h: the others share its weight. Words without any change nothing."""
    model = tiny_network(architecture, projection)
    network: Any = model.network
    encodings = encodings_of(model)
    found, targets = measured(model, encodings)
    for encoding, text, target in zip(encodings, found, targets, strict=True):
        alone = Straight(model, encoding.ids)
        expected = []
        for place in np.flatnonzero(encoding.erasable):
            rest = alone.h[:, torch.arange(len(encoding.ids)) != place]
            logits, _ = network.decide(rest, torch.ones(rest.shape[:2], dtype=torch.bool))
            expected.append(abs((alone.f - logits.softmax(dim=-1)[0])[target].item()))
        assert text.state_change is not None
        close(text.state_change, np.where(np.array(expected) < influence.TINY, 0, expected))
        assert (text.state_change[text.attention == 0] == 0).all()
    assert found[1].state_change is not None and found[1].state_change.max() > 1e-3


def test_all_arrays_are_over_the_words_that_may_be_erased() -> None:
    """The tiny tokenizer puts special tokens around a text, which attention may reach."""
    model = tiny_network("bilstm", "sparsemax")
    encodings = encodings_of(model)
    for encoding, text in zip(encodings, measured(model, encodings)[0], strict=True):
        n = int(encoding.erasable.sum())
        assert n == len(encoding.ids) - 2
        sizes = [
            len(array)
            for array in (
                text.attention, text.input_gradient, text.state_gradient, text.input_change,
                text.state_change, text.on_states,
            )
        ]  # fmt: skip
        assert sizes == [n] * 6 and text.on_states.shape == (n, n)
        assert influence_values(text)["length"] == n


def test_a_transformer_s_classifier_has_no_h_to_leave_out() -> None:
    model = tiny_network("bert")
    assert [text.state_change for text in measured(model, encodings_of(model))[0]] == [None] * 4


@pytest.mark.parametrize("name", STORED)
def test_a_bert_has_the_stored_values(name: str, golden: dict[str, np.ndarray]) -> None:
    """Shares of gradients at all tokens, special ones too, and changes when they are deleted."""
    stored = STORED[name]
    tokenizer = tiny.tiny_tokenizer()
    model = build_model("reference", reference_network(2), tokenizer, labels=("0", "1"))
    ids, types = (golden[f"{name}_nl2/{key}"] for key in ("input_ids", "token_type_ids"))
    encoding = replace(row_encoding(ids, ()), types=types)
    (text,), (target,) = measured(model, [encoding])
    assert target == stored["target"]
    gradients = text.input_gradient
    close(gradients / gradients.sum(), stored["g_prob"])
    close(text.input_change, stored["loo_prob_abs"])
    values = influence_values(text)
    assert values["entropy_gradient_x"] == pytest.approx(stored["H_g"], abs=1e-10)
    assert values["entropy_loo_x"] == pytest.approx(stored["H_D"], abs=1e-10)


def test_of_a_long_text_some_positions_are_asked_for() -> None:
    """Drawn by the id alone: as for another network, order or company of texts."""
    model, other = tiny_network("bilstm"), tiny_network("transformer")
    long = " ".join(["good film and a dull plot"] * 4)
    texts = [Example("short", "good film", 0), Example("long", long, 0), Example("next", long, 0)]
    encodings = [encode(model, example) for example in texts]
    found, _ = measured(model, encodings, positions=6)
    assert [len(text.positions) for text in found] == [2, 6, 6]
    digest = hashlib.sha256(b"positions:long").digest()[:8]
    draw = np.random.default_rng(int.from_bytes(digest, "big"))
    drawn = sorted(draw.choice(24, 6, replace=False).tolist())
    assert found[1].positions.tolist() == drawn != found[2].positions.tolist()
    (alone,), _ = measured(other, [encode(other, texts[1])], positions=6)
    assert alone.positions.tolist() == drawn
    (every,), _ = measured(model, encodings[1:2], positions=24)
    close(found[1].on_states, every.on_states[drawn])
    assert found[1].on_states.shape == (6, 24) and len(found[1].attention) == 24


def test_rounding_of_a_probability_counts_as_no_change() -> None:
    """In float32, hundreds of h without attention would otherwise be ranked by noise."""
    model = tiny.tiny_model("bilstm", 2, torch.float32, projection="sparsemax")
    model.network.query.weight.data *= 8
    encodings = encodings_of(model)
    text = measured(model, encodings)[0][1]
    assert text.state_change is not None
    assert (text.state_change[text.attention == 0] == 0).all()
    assert influence._without_noise(np.array([0.0, 9e-7, 2e-6])).tolist() == [0, 0, 2e-6]


def test_the_network_is_left_as_it_was() -> None:
    model = tiny_network("bilstm", "sparsemax")
    before = {name: value.clone() for name, value in model.network.state_dict().items()}
    first, _ = measured(model, encodings_of(model))
    again, _ = measured(model, encodings_of(model))
    for one, two in zip(first, again, strict=True):
        assert np.array_equal(one.on_states, two.on_states)
    assert not model.network.training
    assert all(torch.equal(value, before[k]) for k, value in model.network.state_dict().items())
    assert all(p.grad is None and not p.requires_grad for p in model.network.parameters())


def test_models_without_classes_or_attention_are_refused(qa_model: Model) -> None:
    question = Example("q", "good film", 0, "is the film")
    encoding = encode(qa_model, question)
    with (
        Session(qa_model) as session,
        pytest.raises(FaithbenchError, match="is a question answerer; choose a classification"),
    ):
        measure_influence(session, [encoding], predictions(session.engine, [encoding]))
    cnn = tiny.tiny_model("cnn")
    with pytest.raises(CannotServeError, match="a cnn model gives no attention matrices"):
        measured(cnn, encodings_of(cnn))

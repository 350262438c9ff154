"""Sensitivity: a linear model's by hand, 0 for what does not look, and the model left alone."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from transformers.modeling_outputs import SequenceClassifierOutput

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Example
from faithbench.explainers.captum import CaptumAdapter
from faithbench.explainers.controls import FirstTokens, Random
from faithbench.explainers.gradient import InputXGradient
from faithbench.explainers.per_example import per_example
from faithbench.explainers.perturbation import LeaveOneOut, Occlusion
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session
from faithbench.run.measures import sensitivity
from faithbench.run.measures.sensitivity import draw_perturbations, max_sensitivity
from tests.support.explainers import USUAL

TEXTS = ["good film", "the plot is not very good and the film is dull", "dull dull good"]
RADIUS = 0.02
QUICK = {
    "lrp-mask": "lrp-mask:mask=ones",
    "integrated-gradients": "integrated-gradients:steps=5",
    "lime": "lime:samples=32",
    "kernel-shap": "kernel-shap:samples=32",
    "partition-shap": "partition-shap:evaluations=16",
}


class BagOfEmbeddings(torch.nn.Module):
    """A linear model: the logits are a matrix times the sum of the tokens' embeddings."""

    def __init__(self, size: int, width: int = 4) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(5)
        self.table = torch.nn.Embedding(size, width, dtype=torch.float64)
        self.table.weight.data = torch.randn(size, width, generator=draw, dtype=torch.float64)
        weight = torch.randn(2, width, generator=draw, dtype=torch.float64)
        self.read = torch.nn.Parameter(weight)
        self.config = SimpleNamespace(
            pad_token_id=0, max_position_embeddings=64, model_type="bag", num_labels=2
        )
        self.device, self.dtype = torch.device("cpu"), torch.float64

    def get_input_embeddings(self) -> torch.nn.Module:
        return self.table

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        summed = (self.table(input_ids) * attention_mask[:, :, None]).sum(1)
        return SequenceClassifierOutput(logits=summed @ self.read.T)


@pytest.fixture(scope="module")
def bag(tokenizer) -> Model:
    return build_model("bag", BagOfEmbeddings(len(tokenizer)), tokenizer, labels=("no", "yes"))


def perturbed(model: Model, batch: Batch, row: int, samples: int) -> tuple[Any, Any]:
    """Return a row's word embeddings, and its perturbed ones for each sample."""
    network: Any = model.network
    table = network.table.weight.numpy()
    ids = batch.encodings[row].ids[1:-1]
    own, which = np.unique(ids, return_inverse=True)
    noise = draw_perturbations(batch.seeds[row], samples, len(own), table.shape[1]).numpy()
    return table[ids], table[ids][None] + RADIUS * noise.astype(np.float64)[:, which]


def test_input_x_gradient_of_a_linear_model(bag: Model, batch_of) -> None:
    batch = batch_of(bag, TEXTS, [0, 1, 1])
    found = max_sensitivity(bag, CaptumAdapter(), batch)
    network: Any = bag.network
    for row, value in enumerate(found):
        read = network.read[batch.targets[row]].numpy()
        clean, moved = perturbed(bag, batch, row, 10)
        change = np.linalg.norm((moved - clean) @ read, axis=1) / np.linalg.norm(clean @ read)
        assert value == pytest.approx(change.max(), rel=1e-9)
        # No coordinate moves by more than the radius.
        most = RADIUS * abs(read).sum() * len(clean) ** 0.5 / np.linalg.norm(clean @ read)
        assert value is not None and 0 < value < most


def test_occlusion_of_a_linear_model_masks_with_a_clean_token(bag: Model, batch_of) -> None:
    batch = batch_of(bag, TEXTS, [0, 1, 1])
    found = max_sensitivity(bag, Occlusion(), batch, samples=3)
    network: Any = bag.network
    table, read = network.table.weight.numpy(), network.read.numpy()
    cls, sep, mask = table[2], table[3], table[4]

    def drops(words: np.ndarray, target: int) -> np.ndarray:
        whole = words.sum(0) + cls + sep
        rows = np.vstack([whole, whole - words + mask])
        odds = np.exp(rows @ read.T)
        f = odds[:, target] / odds.sum(axis=1)
        return f[0] - f[1:]

    for row, value in enumerate(found):
        clean, moved = perturbed(bag, batch, row, 3)
        target = int(batch.targets[row])
        scores = drops(clean, target)
        change = [np.linalg.norm(drops(m, target) - scores) for m in moved]
        assert value == pytest.approx(max(change) / np.linalg.norm(scores), rel=1e-9)


def test_twice_the_radius_moves_a_linear_model_twice_as_far(bag: Model, batch_of) -> None:
    batch = batch_of(bag, TEXTS)
    once = max_sensitivity(bag, CaptumAdapter(), batch, radius=0.02)
    twice = max_sensitivity(bag, CaptumAdapter(), batch, radius=0.04)
    np.testing.assert_allclose(twice, 2 * np.array(once, dtype=float), rtol=1e-9)
    assert max_sensitivity(bag, CaptumAdapter(), batch, radius=0.0) == pytest.approx([0, 0, 0])


@pytest.mark.parametrize("explainer", [Random(), FirstTokens()])
def test_what_does_not_look_at_the_network_does_not_move(tiny_model, batch_of, explainer) -> None:
    model = tiny_model()
    assert max_sensitivity(model, explainer, batch_of(model, TEXTS)) == [0.0, 0.0, 0.0]


@dataclass(frozen=True)
class Zero:
    """Score 0 where tokens may be erased, and nonsense elsewhere."""

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        scores = torch.full(batch.ids.shape, torch.nan, dtype=torch.float64)
        return scores.masked_fill(batch.erasable, 0)


def test_scores_of_nothing_but_zero_have_no_relative_change(tiny_model, batch_of) -> None:
    model = tiny_model()
    assert max_sensitivity(model, Zero(), batch_of(model, TEXTS)) == [None, None, None]


CONTROLS = {"random", "first-tokens", "human", "salience"}


@pytest.mark.parametrize("name", sorted(set(USUAL) - CONTROLS))
def test_every_explainer_moves_a_little(tiny_model, batch_of, name: str) -> None:
    model = tiny_model()
    (chosen,) = find_explainers(QUICK.get(name, name))
    batch = batch_of(model, TEXTS[:2], [1, 1])
    found = max_sensitivity(model, chosen.explainer, batch, samples=2)
    assert all(value is not None and 0 < value < 50 for value in found), found


@pytest.mark.parametrize("explainer", [InputXGradient(), Occlusion(), LeaveOneOut()])
@pytest.mark.parametrize("architecture", ["roberta", "gpt2", "electra"])
def test_an_example_alone_or_in_a_batch(tiny_model, architecture: str, explainer) -> None:
    model = tiny_model(architecture)
    encodings = [encode(model, Example(f"e{i}", text, 0)) for i, text in enumerate(TEXTS)]
    together = max_sensitivity(model, explainer, collate(model, encodings, [0, 1, 1], [7, 8, 9]))
    for encoding, target, seed, value in zip(
        encodings, [0, 1, 1], [7, 8, 9], together, strict=True
    ):
        alone = max_sensitivity(model, explainer, collate(model, [encoding], [target], [seed]))
        assert alone == pytest.approx([value], rel=1e-6)


def test_samples_come_in_any_number_at_a_time(
    tiny_model, batch_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    wanted = max_sensitivity(model, InputXGradient(), batch, samples=5)
    for tokens in (1, 2 * batch.ids.numel()):
        monkeypatch.setattr(sensitivity, "TOKENS", tokens)
        found = max_sensitivity(model, InputXGradient(), batch, samples=5)
        assert found == pytest.approx(wanted, rel=1e-9)


def test_more_samples_find_no_less(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    few, many = (max_sensitivity(model, Occlusion(), batch, samples=n) for n in (2, 8))
    assert all(a <= b + 1e-12 for a, b in zip(few, many, strict=True))
    assert few != many


def test_another_seed_draws_other_perturbations(tiny_model, batch_of) -> None:
    assert not torch.equal(draw_perturbations(1, 2, 3, 4), draw_perturbations(2, 2, 3, 4))
    first = draw_perturbations(1, 2, 3, 4)
    assert torch.equal(draw_perturbations(1, 5, 3, 4)[:2], first)
    assert float(first.abs().max()) <= 1


def test_a_question_answerer(qa_model) -> None:
    encoding = encode(qa_model, Example("q", "the plot is not good", 0, "is the film good"))
    batch = collate(qa_model, [encoding], [(7, 8)], [3])
    for explainer in (InputXGradient(), Occlusion()):
        (value,) = max_sensitivity(qa_model, explainer, batch, samples=2)
        assert value is not None and 0 < value < 10


seen: list[tuple[str, ...]] = []


@per_example
@dataclass(frozen=True)
class Spelling:
    """Score a token by its letters and by the network."""

    def __call__(self, probs: Any, example: Any) -> Any:
        seen.append(example.tokens)
        return probs(np.ones((1, len(example.tokens)), dtype=bool))[0] * np.arange(
            1, len(example.tokens) + 1
        )


def test_perturbed_words_are_spelled_like_themselves(tiny_model, batch_of) -> None:
    model = tiny_model()
    seen.clear()
    (value,) = max_sensitivity(model, Spelling(), batch_of(model, ["goodly film"]), samples=2)
    assert value is not None and value > 0
    assert seen == [("good", "##ly", "film")] * 3


@dataclass(frozen=True)
class Failing:
    """Fail on the second call, after a look at the network."""

    calls: list[int]

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        scores = Occlusion()(session, batch) + InputXGradient()(session, batch)
        self.calls.append(1)
        if len(self.calls) > 1:
            raise RuntimeError("no more")
        return scores


def state(model: Model, batch: Batch) -> list[Any]:
    """Take down the weights themselves, and what explainers say with what is cached."""
    network = model.network
    return [
        [p.clone() for p in network.parameters()],
        [b.clone() for b in network.buffers()],
        [Occlusion()(Session(model), batch), InputXGradient()(Session(model), batch)],
        [torch.tensor([id(p) for p in network.parameters()])],
        [torch.tensor([len(m._forward_hooks) + len(m._forward_pre_hooks)
                       for m in network.modules()])],
        [torch.tensor([len(model.tokenizer), network.get_input_embeddings().weight.shape[0]])],
    ]  # fmt: skip


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_model_is_as_before_bit_for_bit(tiny_model, batch_of, fails: bool, dtype) -> None:
    model = tiny_model("bert", 2, dtype)
    batch = batch_of(model, TEXTS)
    before = state(model, batch)
    session = Session(model)
    engine = session.engine
    known, spent = dict(engine._known), session.meter.total
    if fails:
        with pytest.raises(RuntimeError, match="no more"):
            max_sensitivity(model, Failing([]), batch)
    else:
        max_sensitivity(model, Occlusion(), batch)
        max_sensitivity(model, InputXGradient(), batch)
    assert session.meter.total == spent
    assert session.engine is engine and engine._known.keys() == known.keys()
    for was, now in zip(before, state(model, batch), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(was, now, strict=True))
    engine.forget()  # and what is computed anew is the same again
    assert torch.equal(Occlusion()(session, batch), before[2][0])


@dataclass(frozen=True)
class Infinite:
    """Give numbers at first, then infinity."""

    calls: list[int]

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        self.calls.append(1)
        return torch.full(batch.ids.shape, 1.0 if len(self.calls) == 1 else torch.inf)


def test_what_makes_no_sense_is_refused(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    for wrong in ({"samples": 0}, {"radius": -1.0}, {"radius": float("nan")}):
        with pytest.raises(FaithbenchError, match="give at least 1"):
            max_sensitivity(model, Random(), batch, **wrong)
    with pytest.raises(FaithbenchError, match="Infinite gave a score that is not finite"):
        max_sensitivity(model, Infinite([]), batch)


def in_turn(samples: torch.Tensor) -> Any:
    """Return what captum calls for the next perturbed input: a function of the input alone."""
    waiting = iter(samples)
    return lambda _inputs: next(waiting)


@pytest.mark.parametrize("name", ["input-x-gradient", "occlusion", "lrp-mask:mask=ones", "gae"])
def test_the_values_are_those_of_captum(tiny_model, batch_of, name: str) -> None:
    """Captum perturbs one text at a time, and explains it as it is once more."""
    from captum.metrics import sensitivity_max

    model = tiny_model()
    (chosen,) = find_explainers(name)
    whole = batch_of(model, TEXTS, [1, 0, 1])
    found = max_sensitivity(model, chosen.explainer, whole, samples=3)
    for row, (encoding, seed) in enumerate(zip(whole.encodings, whole.seeds, strict=True)):
        batch = collate(model, [encoding], [int(whole.targets[row])], [seed])
        grown, ids = sensitivity.perturbed_words(model, batch, RADIUS, 3)
        session, perturb = Session(grown), in_turn(ids)

        def scores(inputs: Any, session=session, batch=batch) -> tuple[torch.Tensor]:
            ids = inputs[0] if isinstance(inputs, tuple) else inputs
            own = sensitivity._respelt(batch.encodings[0], ids[0].numpy())
            with torch.enable_grad():
                part = collate(session.model, [own], [int(batch.targets[0])], batch.seeds)
                result = chosen.explainer(session, part).detach().double()
            session.clear()
            return (result.masked_fill(~batch.erasable, 0),)

        wanted = sensitivity_max(
            scores,
            batch.ids,
            perturb_func=perturb,
            n_perturb_samples=3,
            max_examples_per_batch=1,
        )
        assert found[row] == pytest.approx(float(wanted), rel=1e-5)


def test_explainers_together_and_with_known_scores_are_as_alone(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS)
    explainers = [InputXGradient(), Occlusion(), LeaveOneOut()]
    known = [explainer(Session(model), batch) for explainer in explainers]
    together = sensitivity.max_sensitivities(
        model,
        [sensitivity.Asked("one", e, k) for e, k in zip(explainers, known, strict=True)],
        batch,
        samples=3,
    )
    for explainer, values in zip(explainers, together, strict=True):
        assert values == pytest.approx(
            max_sensitivity(model, explainer, batch, samples=3), rel=1e-6
        )


def test_a_grown_twin_shares_all_weights_but_its_words(tiny_model, batch_of) -> None:
    model = tiny_model()
    twin = model.eager(torch.float64)
    grown, ids = sensitivity.perturbed_words(model, batch_of(model, TEXTS), RADIUS, 2)
    shared = {id(p) for p in twin.parameters()}
    new = [n for n, p in grown.eager(torch.float64).named_parameters() if id(p) not in shared]
    assert len(new) == 1 and new[0].endswith("word_embeddings.weight")
    table = grown.network.get_input_embeddings().weight
    assert torch.equal(grown.eager(torch.float64).get_input_embeddings().weight, table.double())
    assert int(ids.max()) == len(table) - 1

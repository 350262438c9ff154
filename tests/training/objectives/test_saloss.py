"""SaLoss: worked divergences, the published code's values, and what training makes of it."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.salience import textrank
from faithbench.models.encoding import encode
from faithbench.testing import tiny
from faithbench.training.fit import fit
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingBatch, TrainingItem, TrainingSet, collate_items
from faithbench.training.objectives import find_objective
from faithbench.training.objectives.protocol import prepared
from faithbench.training.objectives.saloss import (
    SaLoss,
    content_tokens,
    divergence,
    released_divergence,
)
from tests.support.training import (
    WHOLE,
    answer_splits,
    killer,
    label_splits,
    load_weights,
    save_base,
    silent,
)

TEXTS = ("good film", "the plot is very dull and bad", "a great plot , not bad")


def test_a_divergence_by_hand() -> None:
    """Attention .5, .3 and .2 with the first special: (.6, .4) against (.5, .5)."""
    attention = torch.tensor([[0.5, 0.3, 0.2]])
    salience = torch.tensor([[0.0, 2.0, 2.0]])
    content = torch.tensor([[False, True, True]])
    expected = 0.6 * log(0.6 / 0.5) + 0.4 * log(0.4 / 0.5)
    assert divergence(attention, salience, content).item() == pytest.approx(expected, abs=1e-7)


def test_equal_distributions_diverge_by_nothing_and_dropped_attention_is_finite() -> None:
    content = torch.tensor([[True, True, True, False]])
    same = torch.tensor([[0.2, 0.3, 0.5, 0.0]])
    assert divergence(same, same, content).item() == pytest.approx(0, abs=1e-7)
    dropped = torch.tensor([[0.0, 0.5, 0.5, 0.0]], requires_grad=True)
    loss = divergence(dropped, same, content).sum()
    loss.backward()
    assert loss.item() == pytest.approx(0.5 * log(0.5 / 0.3) + 0.5 * log(0.5 / 0.5))
    assert torch.isfinite(dropped.grad).all()


def test_the_released_loss_has_the_values_of_the_released_code() -> None:
    """Three texts of 9, 6 and 4 tokens; the code's loss is the square of the plain sum."""
    attention = torch.tensor(
        [
            [0.21338750, 0.05899900, 0.09392300, 0.09445217, 0.09588638, 0.07370923, 0.26321951,
             0.05222632, 0.05419689],
            [0.35966742, 0.08342084, 0.06047303, 0.08907798, 0.18069990, 0.22666088, 0, 0, 0],
            [0.27897346, 0.07606912, 0.32853934, 0.31641808, 0, 0, 0, 0, 0],
        ],
        dtype=torch.float64,
    )  # fmt: skip
    salience = torch.tensor(
        [
            [1.60343468, 1.31802857, 0.11354973, 0.67322814, 1.21310663, 1.18914688, 0.85570204,
             1.78430951, 0.83174443],
            [1.12787592, 0.42340243, 0.20092139, 1.30542231, 1.86683810, 0.89438492, 0.34936401,
             1.77348781, 0.64544141],
            [0.58522695, 1.07399786, 1.47634661, 0.44492528, 0.86837500, 1.06038868, 1.23626506,
             1.19786704, 0.58115882],
        ],
        dtype=torch.float64,
    )  # fmt: skip
    lengths = torch.tensor([[9], [6], [4]])
    loss = released_divergence(attention, salience, torch.arange(9)[None] < lengths)
    assert loss.item() == pytest.approx(0.1160692647, abs=1e-6)
    assert loss.sqrt().item() == pytest.approx(0.3406893909, abs=1e-6)


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "bilstm"])
def test_the_loss_is_that_of_the_attention_the_classifier_reads(architecture: str) -> None:
    """Of BERT the first token's, of GPT-2 the last real token's, padding or not; or one query's."""
    model, batch, training_set = tiny_batch(architecture)
    loss: Any = prepared(SaLoss(weight=0.5), model, training_set)
    seen = forward(model, batch, SaLoss.captures)
    expected = 0.0
    for row, item in enumerate(batch.items):
        n = len(item.encoding.ids)
        place = n - 1 if architecture == "gpt2" else 0
        content = content_tokens(item.encoding)
        alpha = seen.attentions[-1][row].mean(dim=0)[place, content].detach().numpy()
        tokens = model.tokenizer.convert_ids_to_tokens(item.encoding.ids[content].tolist())
        sigma = textrank(tokens)
        alpha = alpha / alpha.sum()
        expected += sum(a * (log(a) - log(s)) for a, s in zip(alpha, sigma, strict=True)) / 3
    assert loss(batch, seen).item() == pytest.approx(0.5 * expected, abs=1e-9)


@pytest.mark.parametrize("form", ["paper", "released"])
@pytest.mark.parametrize("salience", ["textrank", "tfidf"])
def test_gradients_are_those_of_finite_differences(form: str, salience: str) -> None:
    """At a query matrix of the last block, in double precision."""
    model, batch, training_set = tiny_batch("bert")
    loss: Any = prepared(SaLoss(salience, 0.7, form), model, training_set)
    weight = model.network.bert.encoder.layer[-1].attention.self.query.weight
    weight.requires_grad_()

    def value() -> torch.Tensor:
        return loss(batch, forward(model, batch, SaLoss.captures))

    (gradient,) = torch.autograd.grad(value(), weight)
    for place in ((0, 0), (5, 7), (31, 2)):
        step = 1e-5
        sides = []
        for sign in (1, -1):
            with torch.no_grad():
                weight[place] += sign * step
                sides.append(value().item())
                weight[place] -= sign * step
        slope = (sides[0] - sides[1]) / (2 * step)
        assert gradient[place].item() == pytest.approx(slope, rel=1e-5, abs=1e-10)


def test_training_with_it_moves_attention_and_weight_0_changes_no_bit(tmp_path: Path) -> None:
    """A hundred times the weight leaves a smaller divergence on the training texts."""
    base, splits = save_base(tmp_path, "bert"), label_splits()
    after = {}
    for name, objectives in {
        "plain": (),
        "zero": ("saloss:weight=0",),
        "much": ("saloss:salience=uniform,weight=100",),
    }.items():
        recipe = replace(WHOLE, objectives=objectives)
        fit(splits, recipe, tmp_path / name, silent, base=str(base), device="cpu")
        after[name] = load_weights(tmp_path / name)
    for key, value in after["plain"].items():
        assert torch.equal(value, after["zero"][key]), key
    spread = {name: uniform_divergence(tmp_path / name) for name in ("plain", "much")}
    assert spread["much"] < 0.5 * spread["plain"]


def test_a_killed_training_continues_to_the_same_bytes(tmp_path: Path) -> None:
    base, splits = save_base(tmp_path, "bert"), label_splits()
    recipe = replace(
        WHOLE, epochs=1, objectives=("saloss:salience=tfidf,weight=1", "cross-entropy")
    )
    options = {"base": str(base), "device": "cpu", "every": 2}
    fit(splits, recipe, tmp_path / "whole", silent, **options)
    with pytest.raises(KeyboardInterrupt):
        fit(splits, recipe, tmp_path / "killed", killer("epoch 1/1", 5), **options)
    fit(splits, recipe, tmp_path / "killed", silent, **options)
    for path in (tmp_path / "whole").iterdir():
        assert path.read_bytes() == (tmp_path / "killed" / path.name).read_bytes(), path.name


def uniform_divergence(folder: Path) -> float:
    from faithbench.models.model import load_model

    model = load_model(str(folder), labels=("no", "yes"), device="cpu")
    items = [TrainingItem(encode(model, e), (e.label,)) for e in label_splits().train.examples]
    training_set = TrainingSet(tuple(items), None, {})
    make_readable(model, SaLoss.captures)
    loss: Any = prepared(SaLoss("uniform", 1.0), model, training_set)
    batch = collate_items(model, items, None)
    return float(loss(batch, forward(model, batch, SaLoss.captures)))


def test_faults_are_named() -> None:
    for text, message in {
        "saloss:salience=textrnk": "no salience named 'textrnk'; did you mean 'textrank'?",
        "saloss:form=code": "no form of saloss named 'code'",
    }.items():
        with pytest.raises(FaithbenchError, match=message.replace("?", r"\?")):
            find_objective(text)


def test_a_question_answerer_is_refused(tmp_path: Path) -> None:
    base = save_base(tmp_path, "bert")
    recipe = replace(WHOLE, metric="f1", objectives=("saloss",))
    with pytest.raises(FaithbenchError, match="saloss needs a token that a classifier reads"):
        fit(answer_splits(), recipe, tmp_path / "out", silent, base=str(base), device="cpu")
    assert not (tmp_path / "out").exists(), "the folder is free for another try"


def tiny_batch(architecture: str) -> tuple[Any, TrainingBatch, TrainingSet]:
    """Return a tiny model whose attention can be read, and three texts as a batch and a set."""
    model = tiny.tiny_model(architecture)
    make_readable(model, SaLoss.captures)
    items = [
        TrainingItem(encode(model, Example(f"e{n}", text, n % 2)), (n % 2,))
        for n, text in enumerate(TEXTS)
    ]
    return model, collate_items(model, items, None), TrainingSet(tuple(items), None, {})

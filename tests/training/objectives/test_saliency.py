"""Saliency Learning: hinges by hand, gradients by differences, refusals, and what training does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.encoding import encode
from faithbench.models.model import Model, load_model
from faithbench.testing import tiny_model
from faithbench.training.fit import fit
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingBatch, TrainingItem, TrainingSet, collate_items
from faithbench.training.level_saliency import measure_levels
from faithbench.training.objectives import find_objective
from faithbench.training.objectives.saliency import (
    Saliency,
    hinge,
    level_gradients,
    saliency,
    signal_of_sums,
)
from faithbench.training.recipe import Recipe, Splits
from tests.support.architectures import reference_batch, reference_network
from tests.support.training import (
    WHOLE,
    answer_splits,
    killer,
    label_splits,
    load_weights,
    save_base,
    silent,
)

LEVELS = frozenset({"levels"})
CNN = Recipe(
    arch="cnn",
    vectors="random",
    width=8,
    method="full",
    epochs=2,
    batch_size=4,
    encoder_dropout=0.2,
)
EXAMPLES = (
    Example("a", "good film", 1, rationale=((0, 4),)),
    Example("b", "the plot is very dull and bad", 0, rationale=((17, 21), (26, 29))),
    Example("c", "a great plot , not bad", 1),
)


def batch_of(model: Model, examples: tuple[Example, ...] = EXAMPLES) -> TrainingBatch:
    items = [TrainingItem(encode(model, example), (example.label,)) for example in examples]
    return collate_items(model, items, None)


def marked_splits() -> Splits:
    """The label splits, where the first word of positive texts is the rationale."""

    def marked(example: Example) -> Example:
        end = example.text.index(" ")
        return replace(example, rationale=((0, end),)) if example.label else example

    splits = label_splits()
    return Splits(
        *(
            replace(part, examples=tuple(map(marked, part.examples)))
            for part in vars(splits).values()
        )
    )


def test_a_hinge_by_hand() -> None:
    scores = torch.tensor([[-0.5, 0.2, -0.1, 0.0], [0.3, -0.4, 0.0, 0.0]], dtype=torch.float64)
    marks = torch.tensor([[True, True, True, False], [True, False, False, False]])
    unmarked = torch.tensor([[False, False, False, True], [False, True, True, True]])
    # Eq. 1: .5 and .1 are missing in the first text, nothing in the second; two texts.
    assert hinge(scores, marks, unmarked).item() == pytest.approx(0.3)
    # Against the means of the unmarked, 0 and -.4 / 3.
    assert hinge(scores, marks, unmarked, "contrast").item() == pytest.approx(0.3)
    raised = scores + 1  # all words positive
    assert hinge(raised, marks, unmarked).item() == 0
    assert hinge(raised, marks, unmarked, "contrast").item() == pytest.approx(0.3)


def test_the_formula_has_the_values_of_the_golden_file() -> None:
    """Case s2_len12: its hinges and its saliency accuracy, from its own saliencies."""
    logit = [
        2.7755575615628914e-16, 2.7755575615628914e-17, -4.440892098500626e-16,
        5.551115123125783e-17, 1.6653345369377348e-16, 1.1102230246251565e-16,
        3.3306690738754696e-16, -3.3306690738754696e-16, -5.551115123125783e-17,
        5.551115123125783e-17, -3.885780586188048e-16, 0.0,
    ]  # fmt: skip
    probability = [
        5.551115123125783e-17, 6.938893903907228e-18, -5.551115123125783e-17, 0.0,
        -3.469446951953614e-17, 1.0408340855860843e-17, 1.3877787807814457e-17, 0.0,
        -2.7755575615628914e-17, 0.0, 2.0816681711721685e-17, 2.7755575615628914e-17,
    ]  # fmt: skip
    marks = torch.zeros(1, 12, dtype=torch.bool)
    marks[0, [2, 4, 9]] = True
    for values, expected in ((logit, 4.440892098500626e-16), (probability, 9.020562075079397e-17)):
        scores = torch.tensor([values], dtype=torch.float64)
        assert hinge(scores, marks, ~marks).item() == pytest.approx(expected, rel=1e-12, abs=0)
    positive = [logit[i] > 0 for i in (2, 4, 9)]
    assert 100 * np.mean(positive) == pytest.approx(66.66666666666667)


@pytest.mark.parametrize("name", ["s0_len3", "s1_len8", "s2_len12", "s3_len24", "s5_pair17"])
def test_sums_of_the_golden_model_are_rounding_noise(golden: Any, name: str) -> None:
    """The file's own saliencies are all below 1e-15: a layer norm follows the embeddings."""
    seen = run_capture(reference_network(2), reference_batch(golden, name, 2, [0]))
    sums = seen.embedding_gradients.sum(dim=-1)
    assert sums.abs().max() < 1e-14 and seen.embedding_gradients.norm(dim=-1).max() > 1e-3
    assert signal_of_sums(seen.embedding_gradients, torch.ones_like(sums)) < 1e-12


@pytest.mark.parametrize("score", ["sum", "gate", "contrast"])
@pytest.mark.parametrize("of", ["probability", "logit"])
def test_its_gradient_is_that_of_finite_differences(score: str, of: str) -> None:
    """On a float64 CNN at all levels: the double backward pass against central differences."""
    model = tiny_model("cnn")
    check_gradient(model, Saliency(score=score, of=of))


def test_its_gradient_on_a_transformer_is_that_of_finite_differences() -> None:
    model = tiny_model("bert")
    make_readable(model, LEVELS)
    check_gradient(model, Saliency(levels="word+intermediate", score="gate"))


def check_gradient(model: Model, loss: Saliency) -> None:
    network, batch = model.network.requires_grad_(True), batch_of(model)
    parameters = list(network.parameters())
    value = loss(batch, forward(model, batch, LEVELS))
    assert value.item() > 0
    gradients = torch.autograd.grad(value, parameters, allow_unused=True)
    draw, step = torch.Generator().manual_seed(2), 1e-6
    directions = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in parameters]
    slope = sum((g * d).sum() for g, d in zip(gradients, directions, strict=True) if g is not None)
    values = []
    for sign in (1, -2):  # one step ahead, then two back
        with torch.no_grad():
            for parameter, direction in zip(parameters, directions, strict=True):
                parameter.add_(sign * step * direction)
        values.append(loss(batch, forward(model, batch, LEVELS)).item())
    assert abs(slope) > 1e-3
    assert float(slope) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)


def test_a_gate_is_the_gradient_of_a_factor_of_each_token() -> None:
    model = tiny_model("cnn")
    batch = batch_of(model)
    seen = forward(model, batch, LEVELS)
    (gradient,) = level_gradients(seen, batch.targets[:, 0], ("word",), "probability").values()
    found = saliency(seen.levels["word"], gradient, "gate")
    gates = torch.ones(batch.ids.shape, dtype=torch.float64, requires_grad=True)
    words = model.network.get_input_embeddings()(batch.ids).detach() * gates[..., None]
    logits = model.network(inputs_embeds=words, attention_mask=batch.attention).logits
    wanted = logits.softmax(-1).gather(1, batch.targets[:, :1]).sum()
    (expected,) = torch.autograd.grad(wanted, gates)
    torch.testing.assert_close(found, expected)
    summed = saliency(seen.levels["word"], gradient, "sum")
    torch.testing.assert_close(summed, gradient.sum(-1))


def test_texts_without_a_rationale_add_nothing() -> None:
    model = tiny_model("cnn")
    some = batch_of(model, EXAMPLES[2:])
    assert Saliency()(some, forward(model, some, LEVELS)).item() == 0
    both, one = batch_of(model, (EXAMPLES[0], EXAMPLES[2])), batch_of(model, EXAMPLES[:1])
    value, alone = (Saliency(score="gate")(b, forward(model, b, LEVELS)) for b in (both, one))
    assert value.item() == pytest.approx(alone.item() / 2)


def test_the_weight_and_the_levels_are_factors_and_terms() -> None:
    model = tiny_model("cnn")
    batch = batch_of(model)
    seen = forward(model, batch, LEVELS)
    parts = [Saliency(levels=name, weight=1)(batch, seen).item() for name in seen.levels]
    assert Saliency(weight=0.25)(batch, seen).item() == pytest.approx(sum(parts) / 4)
    assert find_objective("saliency:levels=word+word").loss.names == ("word",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("saliency:levels=words", "no level named 'words'; did you mean 'word'"),
        ("saliency:score=max", "no score of saliency named 'max'"),
        ("saliency:of=margin", "no output of saliency named 'margin'"),
        ("saliency:weight=-1", "weight is at least 0, found -1"),
        ("saliency:weight=nan", "weight is a finite number, found 'nan'"),
    ],
)
def test_bad_settings_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(FaithbenchError, match=said) as error:
        find_objective(text)
    assert "\n" not in str(error.value)


def test_levels_that_a_model_does_not_have_or_that_have_no_signal() -> None:
    model = tiny_model("bert")
    make_readable(model, LEVELS)
    items = tuple(TrainingItem(encode(model, e), (e.label,)) for e in EXAMPLES)
    training_set = TrainingSet(items, None, {})
    with pytest.raises(FaithbenchError, match="a bert model has no level 'decision'; choose from"):
        Saliency().check(model, training_set)
    with pytest.raises(FaithbenchError, match="sums to 0 over the dimensions of level 'word'"):
        Saliency(levels="word").check(model, training_set)
    Saliency(levels="word", score="gate").check(model, training_set)
    Saliency(levels="intermediate").check(model, training_set)


def test_a_question_answerer_has_no_class_to_differentiate(tmp_path: Path) -> None:
    splits = answer_splits()
    marked = replace(splits.train.examples[0], rationale=((0, 2),))
    train = replace(splits.train, examples=(marked, *splits.train.examples[1:]))
    objectives = ("saliency:levels=word,score=gate",)
    recipe = replace(WHOLE, objectives=objectives, metric="f1")
    base = str(save_base(tmp_path, "bert"))
    with pytest.raises(FaithbenchError, match="and a question answerer has none"):
        fit(replace(splits, train=train), recipe, tmp_path / "q", silent, base=base, device="cpu")


def test_a_task_without_rationales_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="learns from rationales, and no example of split"):
        fit(label_splits(), replace(CNN, objectives=("saliency",)), tmp_path, silent, device="cpu")


def test_weight_0_is_plain_training_bit_for_bit(tmp_path: Path) -> None:
    splits = marked_splits()
    trained = {}
    for name in ("", "saliency:weight=0", "saliency:weight=0.5"):
        out = tmp_path / (name or "plain").replace(":", "-")
        fit(splits, replace(CNN, objectives=(name,) if name else ()), out, silent, device="cpu")
        trained[name] = load_weights(out)
    plain, nothing, half = trained.values()
    assert all(torch.equal(plain[key], nothing[key]) for key in plain)
    assert any(not torch.equal(plain[key], half[key]) for key in plain)


def test_training_turns_the_gradient_of_marked_words_and_its_card_says_what_was_cut(
    tmp_path: Path,
) -> None:
    splits = marked_splits()
    last = splits.train.examples[0]
    far = replace(last, id="far", text="good " * 8 + "end", label=1, rationale=((0, 4), (40, 43)))
    train = replace(splits.train, examples=(*splits.train.examples, far))
    splits = replace(splits, train=train)
    recipe = replace(CNN, epochs=6, patience=6, max_tokens=6, learning_rate=5e-3)
    found = {}
    for name, objectives in (("plain", ()), ("learnt", ("saliency:weight=5",))):
        out = tmp_path / name
        card = fit(splits, replace(recipe, objectives=objectives), out, silent, device="cpu")
        model = load_model(str(out), labels=("no", "yes"), device="cpu")
        found[name] = measure_levels(model, splits.test)["word"].marked
    assert card["rationale_spans"] == {"whole": 14, "cut": 0, "lost": 1}
    assert card["recipe"]["objectives"][1]["settings"]["weight"] == 5
    assert found["learnt"] == 1.0 > found["plain"]


def test_a_killed_training_ends_with_the_same_bits(tmp_path: Path) -> None:
    splits = marked_splits()
    recipe = replace(CNN, objectives=("saliency:score=contrast",))
    fit(splits, recipe, tmp_path / "whole", silent, device="cpu", every=2)
    with pytest.raises(KeyboardInterrupt):
        fit(splits, recipe, tmp_path / "killed", killer("epoch 2/2", 5), device="cpu", every=2)
    fit(splits, recipe, tmp_path / "killed", silent, device="cpu", every=2)
    for name in ("model.safetensors", "card.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()


def test_an_adapter_on_frozen_embeddings_learns_by_the_gate(tmp_path: Path) -> None:
    base = str(save_base(tmp_path, "bert"))
    recipe = Recipe(epochs=1, rank=2, alpha=4, batch_size=4)
    recipe = replace(recipe, objectives=("saliency:levels=word,score=gate",))
    card = fit(marked_splits(), recipe, tmp_path / "out", silent, base=base, device="cpu")
    assert card["rationale_spans"]["whole"] == 13

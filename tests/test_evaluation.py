"""Accuracy is the share of examples whose most probable class is their label."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from faithbench.data import Dataset
from faithbench.encoding import encode
from faithbench.errors import FaithbenchError
from faithbench.evaluation import accuracy, predict
from faithbench.forward import Engine
from faithbench.models import Model, build_model
from faithbench.types import Example
from tests.builders import make_task

TEXTS = ["good film", "a very dull plot", "not great", "the plot is great, and good", "bad"]


@pytest.mark.parametrize(
    ("bias", "expected"),
    [([0.0, 1.0], 0.6), ([1.0, 0.0], 0.4), ([0.0, 0.0], 0.4)],
    ids=["always yes", "always no", "a tie goes to the first class"],
)
def test_a_model_of_one_answer(tiny_model, bias: list[float], expected: float) -> None:
    """Of the labels yes, no, yes, yes, no, three in five are yes."""
    assert accuracy(constant(tiny_model(), bias), dataset(TEXTS, [1, 0, 1, 1, 0])) == expected


def test_accuracy_is_what_a_count_by_hand_gives(tiny_model, tokenizer) -> None:
    model = tiny_model()
    answers = []
    for text in TEXTS:
        with torch.no_grad():
            logits = model.network(**tokenizer(text, return_tensors="pt")).logits[0]
        answers.append(int(logits[1] > logits[0]))
    wrong_twice = [1 - answers[0], *answers[1:4], 1 - answers[4]]
    assert accuracy(model, dataset(TEXTS, answers)) == 1.0
    assert accuracy(model, dataset(TEXTS, wrong_twice)) == 0.6
    assert accuracy(model, dataset(TEXTS, [1 - answer for answer in answers])) == 0.0


def test_progress_goes_by_chunks_of_256(tiny_model) -> None:
    texts = [f"w{number % 7}" for number in range(300)]
    labels = [int(number < 75) for number in range(300)]
    said: list[tuple[str, int, int]] = []
    found = accuracy(
        constant(tiny_model(), [0.0, 1.0]),
        dataset(texts, labels),
        progress=lambda *step: said.append(step),
    )
    assert found == 0.25
    assert said == [("accuracy on test", 256, 300), ("accuracy on test", 300, 300)]


def test_the_evidence_of_a_pair_task_decides_what_is_read(tiny_model) -> None:
    """Cut to 64 tokens, a long second text is an error unless it is evidence."""
    long = " ".join(["w1"] * 70)
    examples = (Example("e", "good", 1, long),)
    both, first = (
        Dataset(
            make_task(kind="pair", evidence=evidence, hub=None),
            *("folder", "test", examples, "", "none", False),
        )
        for evidence in ("both", "text")
    )
    model = constant(tiny_model(), [0.0, 1.0])
    assert accuracy(model, both) == 1.0
    with pytest.raises(FaithbenchError, match="example 'e': its second text leaves no room"):
        accuracy(model, first)


def test_predictions_come_in_the_examples_order(tiny_model) -> None:
    model = tiny_model("bert", 3)
    encodings = [encode(model, Example(text, text, 0)) for text in TEXTS]
    together = predict(Engine(model), encodings)
    apart = [predict(Engine(model), [encoding])[0] for encoding in encodings]
    assert together.shape == (5, 3)
    np.testing.assert_allclose(together, np.array(apart), rtol=0, atol=1e-12)


def constant(model: Model, bias: list[float]) -> Model:
    """Return a model whose logits are the bias, whatever the text."""
    network = copy.deepcopy(model.network)
    network.classifier.weight.zero_()
    network.classifier.bias.copy_(torch.tensor(bias))
    return build_model("constant", network, model.tokenizer, labels=model.labels)


def dataset(texts: list[str], labels: list[int]) -> Dataset:
    examples = tuple(
        Example(f"e{i}", text, label)
        for i, (text, label) in enumerate(zip(texts, labels, strict=True))
    )
    return Dataset(make_task(), "folder", "test", examples, "", "none", False)

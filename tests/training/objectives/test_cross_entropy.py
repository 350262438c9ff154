"""Cross-entropy: worked numbers, and the loss that transformers' own models compute."""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest
import torch

from faithbench.core.types import Answer, Example
from faithbench.data.kinds.question_answering import QUESTION_ANSWERING
from faithbench.models.encoding import encode, inputs_of
from faithbench.testing import tiny
from faithbench.training.items import TrainingBatch, TrainingItem, collate_items
from faithbench.training.objectives import ForwardPass
from faithbench.training.objectives.cross_entropy import CrossEntropy


def test_two_classes_by_hand() -> None:
    """Logits 0 and ln 3 give probabilities 1/4 and 3/4."""
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]])
    batch = made_batch([[1], [0]])
    expected = (-log(3 / 4) - log(1 / 4)) / 2
    assert CrossEntropy()(batch, ForwardPass((logits,))).item() == pytest.approx(expected)


def test_a_weighted_mean_is_divided_by_the_weights() -> None:
    """The second item's class counts three times: (ln 4/3 + 3 ln 4) / 4."""
    logits = torch.tensor([[0.0, log(3)], [0.0, log(3)]])
    batch = made_batch([[1], [0]], class_weights=[3.0, 1.0])
    expected = (log(4 / 3) + 3 * log(4)) / 4
    assert CrossEntropy()(batch, ForwardPass((logits,))).item() == pytest.approx(expected)


def test_padding_is_no_position_of_an_answer() -> None:
    """The last position would have most of the probability, were it not padding."""
    start = torch.tensor([[1.0, 0.0, 9.0]])
    end = torch.tensor([[0.0, 2.0, 9.0]])
    batch = made_batch([[0, 1]], attention=[[1, 1, 0]])
    expected = (log(1 + exp(-1)) + log(1 + exp(-2))) / 2
    assert CrossEntropy()(batch, ForwardPass((start, end))).item() == pytest.approx(expected)


def test_a_classifier_s_loss_is_that_of_transformers(tiny_model: Any) -> None:
    model = tiny_model("bert", classes=3)
    texts = ("good film", "the plot is dull", "bad")
    items = [
        TrainingItem(encode(model, Example(f"e{k}", text, k)), (k,)) for k, text in enumerate(texts)
    ]
    batch = collate_items(model, items, None)
    inputs = inputs_of(model.network, batch.ids, batch.types, batch.attention)
    with torch.no_grad():
        outputs = model.network(**inputs, labels=batch.targets[:, 0])
    assert torch.equal(CrossEntropy()(batch, ForwardPass((outputs.logits,))), outputs.loss)


def test_a_question_answerer_s_loss_is_that_of_transformers() -> None:
    """Without padding: transformers lets padding compete with the tokens of the text."""
    model = tiny.tiny_model(qa=True)
    texts = (("the plot is dull", 4, "plot"), ("a good film .", 2, "good film"))
    items = []
    for number, (text, start, words) in enumerate(texts):
        example = Example(f"q{number}", text, 0, "is it", answers=(Answer(start, words),))
        encoding = encode(model, example)
        targets = QUESTION_ANSWERING.training_targets(encoding)
        assert targets is not None
        items.append(TrainingItem(encoding, targets))
    batch = collate_items(model, items, None)
    assert batch.attention.all()
    inputs = inputs_of(model.network, batch.ids, batch.types, batch.attention)
    starts, ends = batch.targets.T
    with torch.no_grad():
        outputs = model.network(**inputs, start_positions=starts, end_positions=ends)
    loss = CrossEntropy()(batch, ForwardPass((outputs.start_logits, outputs.end_logits)))
    assert torch.equal(loss, outputs.loss)


def made_batch(
    targets: list[list[int]],
    *,
    class_weights: list[float] | None = None,
    attention: list[list[int]] | None = None,
) -> TrainingBatch:
    """Return a batch of which only targets, padding and weights matter."""
    empty = torch.zeros((len(targets), 0), dtype=torch.int64)
    return TrainingBatch(
        items=(),
        ids=empty,
        types=empty,
        attention=empty if attention is None else torch.tensor(attention),
        targets=torch.tensor(targets),
        class_weights=None if class_weights is None else torch.tensor(class_weights),
    )

"""Accuracy is the share of examples whose most probable class is their label."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Answer, Example
from faithbench.data.dataset import Dataset
from faithbench.data.kinds.classification import class_scores
from faithbench.data.kinds.question_answering import answer_scores
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.evaluation import (
    accuracy,
    evaluate,
    outcomes,
)
from faithbench.models.model import Model, build_model
from faithbench.testing import tiny
from tests.support.builders import make_task

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
    assert said == [("scoring test", 256, 300), ("scoring test", 300, 300)]


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
    together = Engine(model).log_probabilities([(e.ids, e.types) for e in encodings])
    apart = [Engine(model).log_probabilities([(e.ids, e.types)])[0] for e in encodings]
    assert together.shape == (5, 3)
    np.testing.assert_allclose(together, np.array(apart), rtol=0, atol=1e-12)


def test_class_scores_by_hand() -> None:
    """Gold 0 0 0 1 1 2, said 0 0 1 1 1 0: F1 of 2*2/(3+3), 2*2/(2+3) and 0."""
    gold, found = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 0]
    scores = class_scores(found, gold, 3)
    assert scores["accuracy"] == pytest.approx(4 / 6)
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)
    # (c n - sum there said) / sqrt((n2 - sum said2)(n2 - sum there2)):
    # (24 - 15) / sqrt((36 - 18)(36 - 14)).
    assert scores["matthews"] == pytest.approx(9 / np.sqrt(18 * 22))
    both = {"accuracy": 0.5, "macro_f1": 1 / 3, "matthews": 0.0}
    assert class_scores([1, 1], [0, 1], 2) == pytest.approx(both)


def test_class_scores_agree_with_sklearn() -> None:
    from sklearn.metrics import f1_score, matthews_corrcoef

    draw = np.random.default_rng(0)
    for classes in (2, 4):
        gold, found = draw.integers(classes, size=(2, 50))
        scores = class_scores(found.tolist(), gold.tolist(), classes)
        assert scores["accuracy"] == (gold == found).mean()
        assert scores["macro_f1"] == pytest.approx(f1_score(gold, found, average="macro"))
        assert scores["matthews"] == pytest.approx(matthews_corrcoef(gold, found))


def test_answer_scores_are_means_over_questions() -> None:
    asked = [
        Example("a", "the red dog", 0, "what", answers=(Answer(4, "red dog"), Answer(8, "dog"))),
        Example("b", "a dull plot", 0, "what", answers=(Answer(2, "dull"),)),
    ]
    scores = answer_scores(["dog", "a dull plot"], asked)
    assert scores == pytest.approx({"exact_match": 0.5, "f1": (1 + 2 / 3) / 2})


def test_a_question_answerer_is_scored_by_the_spans_it_finds() -> None:
    """The answers are those that the logits of one question at a time give by hand."""
    model = tiny.tiny_model("bert", qa=True)
    texts = ["the plot is very dull and bad", "good film , not great", "a film"]
    asked = [Example(f"q{i}", text, 0, "is the film good") for i, text in enumerate(texts)]
    by_hand = []
    for example in asked:
        pair = (example.text_b, example.text)
        tokens = model.tokenizer(*pair, return_tensors="pt", return_token_type_ids=True)
        with torch.no_grad():
            out = model.network(**tokens)
        start, end = out.start_logits[0], out.end_logits[0]
        places = [i for i, side in enumerate(tokens.sequence_ids(0)) if side == 1]
        pairs = [(i, j) for i in places for j in places if i <= j]
        i, j = max(pairs, key=lambda pair: float(start[pair[0]] + end[pair[1]]))
        offsets = tokens.encodings[0].offsets
        by_hand.append(example.text[offsets[i][0] : offsets[j][1]])
    examples = tuple(
        replace(e, answers=(Answer(e.text.index(a), a),))
        for e, a in zip(asked, by_hand, strict=True)
    )
    task = make_task(kind="qa", labels=["answerable"], hub=None)
    data = Dataset(task, "folder", "test", examples, "", "none", False)
    assert outcomes(model, data) == by_hand
    assert evaluate(model, data) == {"exact_match": 1.0, "f1": 1.0}
    wrong = tuple(replace(e, answers=(Answer(0, "zebra"),)) for e in examples)
    assert evaluate(model, replace(data, examples=wrong)) == {"exact_match": 0.0, "f1": 0.0}


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


def test_a_class_that_the_task_does_not_have_is_wrong_and_no_part_of_the_mean() -> None:
    """Gold 0, 0, 1, 1 and a third class said once: F1 of 0 is 2/3, of 1 is 1."""
    scores = class_scores([0, 2, 1, 1], [0, 0, 1, 1], 2)
    assert scores["accuracy"] == 0.75
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 1) / 2)

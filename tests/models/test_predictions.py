"""What a model predicts, and what is left of it: classes and answers, against plain softmax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.erasure import erase_tokens
from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Answer, Encoding, Example
from faithbench.data.dataset import Dataset
from faithbench.data.kinds.classification import CLASSIFICATION
from faithbench.data.kinds.question_answering import NO_ANSWER, QUESTION_ANSWERING
from faithbench.metrics.registry import METRICS, case_metrics, find_metrics
from faithbench.models.encoding import encode, inputs_of
from faithbench.models.engine import Engine
from faithbench.models.evaluation import outcomes
from faithbench.models.model import Model
from faithbench.models.predictions import (
    evaluate_inputs,
    gold_tokens,
    predictions,
)
from faithbench.run.measures.aopc_bounds import aopc_bounds
from faithbench.run.score import case_of, score
from tests.reference.protocol import same, table
from tests.support.builders import make_task
from tests.support.cases import attribution_of, row_encoding, table_model

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
QUESTIONS = [
    Example("q0", "the good film is not dull", 0, "is it good"),
    Example("q1", "a badly plot , and a great film .", 0, "what is great", None, ()),
    Example("q2", "goodly", 0, "not", None, (Answer(0, "goodly"),)),
]
# By design the SaLoss code erases whatever it ranks first, special tokens too.
KEEPS_ANSWERS = [
    m for m in case_metrics(METRICS.values()) if m.name != "flip_fraction:variant=saloss"
]


def plain_logits(model: Model, ids: Any, types: Any) -> Any:
    rows = torch.tensor(np.asarray(ids))[None], torch.tensor(np.asarray(types))[None]
    with torch.no_grad():
        return model.network(**inputs_of(model.network, *rows, torch.ones_like(rows[0])))


# Classes


@pytest.mark.parametrize(("architecture", "classes"), [("bert", 2), ("bert", 3), ("gpt2", 2)])
def test_a_class_against_plain_softmax(architecture: str, classes: int, tiny_model: Any) -> None:
    model = tiny_model(architecture, classes)
    engine = Engine(model)
    encodings = [encode(model, Example(f"e{i}", t, i % classes)) for i, t in enumerate(TEXTS)]
    found = predictions(engine, encodings)
    for said, encoding in zip(found, encodings, strict=True):
        probabilities = plain_logits(model, encoding.ids, encoding.types).logits.softmax(-1)[0]
        assert said.target == int(probabilities.argmax())
        assert math.exp(said.log_probability) == pytest.approx(
            float(probabilities.max()), abs=1e-12
        )
        assert said.right == (said.target == encoding.example.label)
        # What is left of each class, on the input without its first token.
        keep = np.arange(len(encoding.ids)) != 1
        row = erase_tokens(encoding, keep, "mask", model.erasure_id("mask"))
        left = plain_logits(model, *row).logits.softmax(-1)[0]
        targets = list(range(classes))
        answers = evaluate_inputs(engine, [[row]] * classes, [encoding] * classes, targets)
        np.testing.assert_allclose(answers.probability, left.numpy(), atol=1e-12)
        assert answers.kept.tolist() == [c == int(left.argmax()) for c in targets]


def test_no_rows_have_no_answers(tiny_model: Any, qa_model: Model) -> None:
    for model in (tiny_model("bert"), qa_model):
        answers = evaluate_inputs(Engine(model), [], [], [])
        assert (answers.log_probability.shape, answers.kept.shape) == ((0,), (0,))


# Answers


def best_by_hand(encoding: Encoding, starts: Any, ends: Any) -> tuple[int, int]:
    """Try all spans of at most 30 tokens within the text."""
    places = np.flatnonzero(encoding.erasable).tolist()
    spans = [(i, j) for i in places for j in places if i <= j < i + 30]
    return max(spans, key=lambda s: (float(starts[s[0]] + ends[s[1]]), -s[0], -s[1]))


def test_an_answer_is_the_best_span_of_the_evaluation(qa_model: Model) -> None:
    engine = Engine(qa_model)
    encodings = [encode(qa_model, example) for example in QUESTIONS]
    found = predictions(engine, encodings)
    task = make_task(kind="qa", labels=["answerable"], hub=None)
    data = Dataset(task, "folder", "test", tuple(QUESTIONS), "d" * 64, "none", False)
    texts = outcomes(qa_model, data)
    for said, encoding, text in zip(found, encodings, texts, strict=True):
        out = plain_logits(qa_model, encoding.ids, encoding.types)
        starts, ends = (out[h][0].log_softmax(-1) for h in ("start_logits", "end_logits"))
        first, last = best_by_hand(encoding, starts, ends)
        assert said.target == (first, last)
        f = float(starts[first].exp() * ends[last].exp())
        assert math.exp(said.log_probability) == pytest.approx(f, abs=1e-12)
        assert encoding.example.text[encoding.spans[first][0] : encoding.spans[last][1]] == text
    # The only accepted answer of the last question is all its text has.
    assert [said.right for said in found] == [False, False, found[2].target == (3, 4)]


def test_what_is_left_of_an_answer(qa_model: Model) -> None:
    """Each token masked in turn: p(start) p(end) of the old answer, and whether it is the best."""
    engine = Engine(qa_model)
    encoding = encode(qa_model, QUESTIONS[1])
    (said,) = predictions(engine, [encoding])
    first, last = said.target
    size = len(encoding.ids)
    rows = [erase_tokens(encoding, np.arange(size) != i, "mask", 4) for i in range(1, size)]
    answers = evaluate_inputs(
        engine, [[row] for row in rows], [encoding] * len(rows), [said.target] * len(rows)
    )
    kept = []
    for row, f in zip(rows, answers.probability, strict=True):
        out = plain_logits(qa_model, *row)
        starts, ends = (out[h][0].log_softmax(-1) for h in ("start_logits", "end_logits"))
        assert f == pytest.approx(float((starts[first] + ends[last]).exp()), abs=1e-12)
        kept.append(best_by_hand(encoding, starts, ends) == said.target)
    assert answers.kept.tolist() == kept


# Tokens [CLS] is it [SEP] w0 ... w5 [SEP], whose start and end logits are looked up.
LOGITS = {"w1": (3.0, 0.0), "w2": (0.0, 3.0), "w4": (2.0, 2.0), "[MASK]": (-9.0, -9.0)}
ASKED = Example("q", "w0 w1 w2 w3 w4 w5", 0, "is it", None, (Answer(3, "w1 w2"),))


def test_the_whole_table_of_an_answer(tokenizer: Any) -> None:
    """On looked-up logits, by the definitions: without a token its share of softmax goes."""
    logits = LOGITS | {"w0": (0.5, 0.25), "w3": (-1.0, 0.0), "w5": (0.0, 0.125)}
    model = table_model(tokenizer, logits)
    engine = Engine(model)
    encoding = encode(model, ASKED)
    (said,) = predictions(engine, [encoding])
    assert (said.target, said.right) == ((5, 6), True)
    # Of eleven tokens seven have e^0 for either end.
    start = math.exp(3) / (math.exp(3) + math.exp(2) + math.exp(0.5) + math.exp(-1) + 7)
    end = math.exp(3) / (math.exp(3) + math.exp(2) + math.exp(0.25) + math.exp(0.125) + 7)
    assert math.exp(said.log_probability) == pytest.approx(start * end)
    by_id = {tokenizer.convert_tokens_to_ids(token): pair for token, pair in logits.items()}
    places = [4, 7, 8, 9]
    scores = [0.25, -0.5, 0.75, -1.0]
    every = np.zeros(11)
    every[places] = scores
    every[[5, 6]] = 7.0

    def oracle(erased: frozenset[int]) -> tuple[float, bool]:
        ids = encoding.ids.copy()
        ids[[places[i] for i in erased]] = 4
        starts, ends = np.exp([by_id.get(i, (0.0, 0.0)) for i in ids.tolist()]).T
        best = best_by_hand(encoding, np.log(starts), np.log(ends))
        return float(starts[5] / starts.sum() * ends[6] / ends.sum()), best == (5, 6)

    metrics = case_metrics(find_metrics("all"))
    (scored,) = score(
        engine,
        [attribution_of(encoding, every, said.target)],
        [said.log_probability],
        metrics,
        "mask",
    )
    expected = table(scores, oracle) | {"answer_recall_at_20": 1.0}
    assert same(scored.values, expected, 1e-12)
    assert scored.values["aopc"] < 0


def test_an_answer_that_is_lost(tokenizer: Any) -> None:
    """Without w1 the start is gone: the best answer is then w4."""
    model = table_model(tokenizer, LOGITS)
    encoding = encode(model, ASKED)
    ids = encoding.ids.copy()
    ids[5] = 4
    rows = [(encoding.ids, encoding.types), (ids, encoding.types)]
    answers = evaluate_inputs(Engine(model), [[row] for row in rows], [encoding] * 2, [(5, 6)] * 2)
    assert answers.kept.tolist() == [True, False]
    again = evaluate_inputs(Engine(model), [[row] for row in rows], [encoding] * 2, [(8, 8)] * 2)
    assert again.kept.tolist() == [False, True]
    start = math.exp(-9) / (math.exp(-9) + math.exp(2) + 9)
    end = math.exp(3) / (math.exp(3) + math.exp(2) + math.exp(-9) + 8)
    assert answers.probability[1] == pytest.approx(start * end)


def test_no_answer_where_the_task_knows_none(tokenizer: Any) -> None:
    """[CLS] is likelier than any span: only a model of two labels may say so."""
    logits = LOGITS | {"[CLS]": (4.0, 4.0)}
    wants = table_model(tokenizer, logits)
    may = table_model(tokenizer, logits, labels=("answerable", "no_answer"))
    encoding = encode(may, ASKED)
    (must,) = predictions(Engine(wants), [encoding])
    (none,) = predictions(Engine(may), [encoding])
    assert (must.target, none.target) == ((5, 6), NO_ANSWER)
    assert (must.right, none.right) == (True, False)
    share = math.exp(4) / (math.exp(4) + math.exp(3) + math.exp(2) + 8)
    assert math.exp(none.log_probability) == pytest.approx(share**2)
    unanswerable = replace(encoding, example=replace(ASKED, answers=()))
    assert predictions(Engine(may), [unanswerable])[0].right
    # All of the text may then be erased, and the prediction that there is none may stay.
    assert QUESTION_ANSWERING.erasable(encoding, none.target).tolist() == [4, 5, 6, 7, 8, 9]
    ids = encoding.ids.copy()
    ids[[5, 6]] = 4
    answers = evaluate_inputs(Engine(may), [[(ids, encoding.types)]], [encoding], [NO_ANSWER])
    assert answers.kept.tolist() == [True]
    ids[0] = 4
    answers = evaluate_inputs(Engine(may), [[(ids, encoding.types)]], [encoding], [NO_ANSWER])
    assert answers.kept.tolist() == [False]


def test_deleting_is_refused_where_places_are_the_answer(qa_model: Model) -> None:
    """With a token deleted, every later one moves up, and the answer's place is another's."""
    engine = Engine(qa_model)
    encoding = encode(qa_model, QUESTIONS[0])
    (said,) = predictions(engine, [encoding])
    attribution = attribution_of(encoding, np.zeros(len(encoding.ids)), said.target)
    with pytest.raises(FaithbenchError) as caught:
        score(engine, [attribution], [said.log_probability], [METRICS["aopc"]], "delete")
    assert str(caught.value) == (
        "an answer loses its place in the text when tokens are deleted; erase with --operator mask"
    )


# What may be erased


def test_places_of_a_class_are_the_evidence() -> None:
    encoding = row_encoding([2, 30, 31, 3, 32, 3])
    assert CLASSIFICATION.erasable(encoding, 1).tolist() == [1, 2, 4]
    assert QUESTION_ANSWERING.erasable(encoding, (2, 4)).tolist() == [1]
    assert QUESTION_ANSWERING.erasable(encoding, (4, 4)).tolist() == [1, 2]
    assert QUESTION_ANSWERING.erasable(encoding, NO_ANSWER).tolist() == [1, 2, 4]
    assert encoding.erasable.tolist() == [False, True, True, False, True, False]


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 24), st.data())
def test_an_answer_is_never_erased(n: int, data: Any) -> None:
    """In no row of any plan, whatever the scores; nor are the question and special tokens."""
    encoding = row_encoding([2, 50, 51, 3, *range(23, 23 + n), 3])
    free = encoding.erasable.copy()
    free[1:3] = False
    encoding = replace(encoding, erasable=free)
    first = data.draw(st.integers(4, 3 + n))
    last = data.draw(st.integers(first, 3 + n))
    scores = data.draw(
        st.lists(st.floats(-5, 5), min_size=len(free), max_size=len(free)).map(np.array)
    )
    case = case_of(QUESTION_ANSWERING, attribution_of(encoding, scores, (first, last)), -1.0)
    stays = np.ones(len(free), dtype=bool)
    stays[4 : 4 + n] = False
    stays[first : last + 1] = True
    for metric in KEEPS_ANSWERS:
        assert metric.rows(case)[:, stays].all(), metric.name


def test_bounds_never_erase_an_answer(qa_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(qa_model)
    encoding = encode(qa_model, QUESTIONS[1])
    (said,) = predictions(engine, [encoding])
    first, last = said.target
    rows: list[Any] = []
    plain = Engine.log_probabilities

    def watched(self: Engine, own: Any, head: str = "logits") -> Any:
        rows.extend(ids for ids, _ in own)
        return plain(self, own, head)

    monkeypatch.setattr(Engine, "log_probabilities", watched)
    low, high = aopc_bounds(engine, encoding, said, "mask")
    assert low < high
    assert rows
    fixed = ~encoding.erasable
    fixed[first : last + 1] = True
    assert all((ids[fixed] == encoding.ids[fixed]).all() for ids in rows)


# Gold answers

#        [CLS]   is it   [SEP]   "An" "##na" "met" "Bob"   [SEP]
OFFSETS = ((0, 0), (0, 2), (3, 5), (0, 0), (0, 2), (2, 4), (5, 8), (9, 12), (0, 0))


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(0, "Anna")], [[4, 5]]),
        ([(9, "Bob")], [[7]]),
        ([(0, "Anna met")], [[4, 5, 6]]),
        # Part of a token marks it; a blank beside one does not.
        ([(3, "a m")], [[5, 6]]),
        ([(4, " met ")], [[6]]),
        # Several answers, one beyond what the model reads, and none.
        ([(0, "An"), (5, "met Bob")], [[4], [6, 7]]),
        ([(40, "later"), (9, "Bob")], [[7]]),
        ([(40, "later")], []),
        ([], []),
    ],
)
def test_gold_tokens_by_hand(answers: list[tuple[int, str]], expected: list[list[int]]) -> None:
    """The question's tokens have offsets of their own, in another text: they are never gold."""
    example = Example("q", "Anna met Bob", 0, "is it", None, tuple(Answer(*a) for a in answers))
    encoding = row_encoding([2, 11, 12, 3, 30, 31, 32, 33, 3], example=example, spans=OFFSETS)
    free = encoding.erasable.copy()
    free[1:3] = False
    found = gold_tokens(replace(encoding, erasable=free))
    assert [np.flatnonzero(marked).tolist() for marked in found] == expected


def test_gold_tokens_of_word_pieces(qa_model: Model) -> None:
    """[CLS] is it [SEP] a bad ##ly plot [SEP]: `badly` is two tokens."""
    example = Example("q", "a badly plot", 0, "is it", None, (Answer(2, "badly"),))
    (marked,) = gold_tokens(encode(qa_model, example))
    assert np.flatnonzero(marked).tolist() == [5, 6]

"""Targets of each example, class weights, excerpts, and the order of batches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Answer, Encoding, Example
from faithbench.data.dataset import Dataset
from faithbench.data.kinds.question_answering import QUESTION_ANSWERING as KIND
from faithbench.models.encoding import encode
from faithbench.testing import tiny
from faithbench.training.items import (
    TrainingItem,
    batches,
    class_weights,
    collate_items,
    excerpt,
    make_training_set,
    schedule,
    with_excerpts,
)
from faithbench.training.recipe import Recipe
from tests.support.builders import make_task

#       0    4    9  12  16   21  26
TEXT = "the plot is not goodly , dull film"


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([(4, "plot")], (4 + 1, 4 + 1)),
        ([(16, "goodly")], (4 + 4, 4 + 5)),
        ([(16, "goodly , dull film")], (4 + 4, 4 + 8)),
        ([(4, "plot"), (0, "the plot"), (0, "the plot")], (4 + 0, 4 + 1)),
        ([(4, "plot"), (0, "the plot")], (4 + 1, 4 + 1)),
        ([], (0, 0)),
        ([(16, "good")], (4 + 4, 4 + 4)),
        ([(5, "lot")], None),
        ([(4, "plo")], None),
    ],
    ids=["word", "pieces", "phrase", "most frequent", "tie", "none", "piece", "start", "end"],
)
def test_answer_tokens(answers: list[tuple[int, str]], expected: tuple[int, int] | None) -> None:
    """[CLS] is 0, `is it` 1 and 2, [SEP] 3; the text's tokens start at 4."""
    encoding = asked(answers)
    assert KIND.training_targets(encoding) == expected
    assert KIND.why_unreadable(encoding) == "inside_a_token"


def test_an_answer_beyond_the_window_is_cut_off() -> None:
    long = "w1 " * 70 + "plot"
    beyond, within = asked([(210, "plot")], long), asked([(0, "w1")], long)
    assert KIND.training_targets(beyond) is None and KIND.why_unreadable(beyond) == "cut_off"
    assert (
        KIND.training_targets(within) == (4, 4) and KIND.why_unreadable(within) == "inside_a_token"
    )


def test_a_training_set_counts_left_out_questions_by_reason() -> None:
    long = "w1 " * 70 + "plot"
    texts = ((TEXT, 4, "plot"), (TEXT, 5, "lot"), (TEXT, 9, "is"), (long, 210, "plot"))
    examples = tuple(
        Example(f"q{number}", text, 0, "is it", answers=(Answer(start, words),))
        for number, (text, start, words) in enumerate(texts)
    )
    steps: list[tuple[str, int, int]] = []
    training_set = make_training_set(
        tiny.tiny_model("bert", qa=True), questions(examples), lambda *step: steps.append(step)
    )
    assert [item.targets for item in training_set.items] == [(5, 5), (6, 6)]
    assert training_set.left_out == {"cut_off": 1, "inside_a_token": 1}
    assert training_set.weights is None
    assert steps == [("reading train", 4, 4)]


def test_a_training_set_without_any_answer_is_refused() -> None:
    example = Example("q", TEXT, 0, "is it", answers=(Answer(5, "lot"),))
    with pytest.raises(FaithbenchError) as caught:
        make_training_set(tiny.tiny_model("bert", qa=True), questions((example,)), lambda *_: None)
    assert str(caught.value) == (
        "none of the 1 answers of split 'train' is among the tokens the model reads; "
        "raise --max-tokens"
    )


def test_class_weights_when_unbalanced() -> None:
    """Of ten rows, six and four are 1.5 times: still balanced. Seven and three are not."""
    model = tiny.tiny_model()
    assert class_weights(labelled([6, 4]), 2) is None
    assert class_weights(labelled([7, 3]), 2) == pytest.approx((10 / 14, 10 / 6), abs=1e-6)
    assert class_weights(labelled([2, 4, 6]), 3) == pytest.approx((2, 1, 2 / 3), abs=1e-6)
    assert class_weights(labelled([9, 1]), 3) is None, "a class that is not there has no weight"
    task = make_task(hub=None)
    examples = tuple(Example(f"e{n}", "good film", int(n < 9)) for n in range(12))
    data = Dataset(task, "folder", "train", examples, "", "none", False)
    training_set = make_training_set(model, data, lambda *_: None)
    assert training_set.weights == (2.0, 0.666667)
    assert training_set.left_out == {}


def test_the_learning_rate_rises_then_falls() -> None:
    """Of 100 steps, six rise to 1; the other 94 fall by equal steps, the last one to 1/94."""
    rates = [schedule(step, 100, 0.06) for step in range(100)]
    assert rates[:8] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1, 93 / 94])
    assert rates[-1] == pytest.approx(1 / 94)
    assert [schedule(step, 4, 0.06) for step in range(4)] == pytest.approx([1, 1, 2 / 3, 1 / 3])
    assert schedule(0, 1, 0.06) == 1


def test_batches_hold_each_example_once_and_change_with_epoch_and_seed() -> None:
    model = tiny.tiny_model()
    texts = [" ".join(["good"] * (1 + number % 5)) for number in range(11)]
    items = [
        TrainingItem(encode(model, Example(f"e{n}", text, 0)), (0,)) for n, text in enumerate(texts)
    ]
    fours = Recipe(batch_size=4)

    def ids(recipe: Recipe, epoch: int) -> list[list[str]]:
        return [[i.encoding.example.id for i in batch] for batch in batches(items, recipe, epoch)]

    first = ids(fours, 0)
    assert sorted(len(batch) for batch in first) == [3, 4, 4]
    assert sorted(i for batch in first for i in batch) == sorted(f"e{n}" for n in range(11))
    assert first == ids(fours, 0)
    assert first != ids(fours, 1)
    assert first != ids(replace(fours, seed=1), 0)
    # Neighbours are of like length: each batch of a pool spans a part of the lengths only.
    spans = sorted(
        (min(len(i.encoding.ids) for i in batch), max(len(i.encoding.ids) for i in batch))
        for batch in batches(items, fours, 0)
    )
    assert spans == [(3, 4), (4, 6), (6, 7)]


def test_a_batch_is_padded_and_has_one_row_per_item() -> None:
    model = tiny.tiny_model()
    examples = (Example("short", "good", 0), Example("long", "good film", 1))
    items = [TrainingItem(encode(model, example), (example.label,)) for example in examples]
    batch = collate_items(model, items, (0.5, 2.0))
    assert batch.items == tuple(items)
    assert batch.attention.tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
    assert batch.ids[0].tolist() == [*items[0].encoding.ids, model.tokenizer.pad_token_id]
    assert batch.targets.tolist() == [[0], [1]]
    assert batch.class_weights is not None
    assert torch.equal(batch.class_weights, torch.tensor([0.5, 2.0]))
    assert collate_items(model, items, None).class_weights is None


def asked(answers: list[tuple[int, str]], text: str = TEXT) -> Encoding:
    given = tuple(Answer(start, words) for start, words in answers)
    return encode(tiny.tiny_model("bert", qa=True), Example("q", text, 0, "is it", answers=given))


def questions(examples: tuple[Example, ...]) -> Dataset:
    task = make_task(kind="qa", labels=["answerable"], hub=None)
    return Dataset(task, "folder", "train", examples, "", "none", False)


def labelled(counts: list[int]) -> list[TrainingItem]:
    encoding = encode(tiny.tiny_model(), Example("e", "good", 0))
    return [TrainingItem(encoding, (label,)) for label, n in enumerate(counts) for _ in range(n)]


EXCERPTS_TEXT = "One came. Two went. Three was better. Four stayed. Five left."
THREE = Example("x", EXCERPTS_TEXT, 2, "a || b", rationale=((20, 36),))


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        (0, "Three was better."),
        (1, "Two went. Three was better. Four stayed."),
        (2, EXCERPTS_TEXT),
        (9, EXCERPTS_TEXT),
    ],
)
def test_sentences_around_the_rationale(reach: int, expected: str) -> None:
    assert excerpt(THREE, reach) == expected


def test_two_rationales_that_meet_are_one_excerpt() -> None:
    both = Example("x", EXCERPTS_TEXT, 2, rationale=((0, 3), (38, 42)))
    assert excerpt(both, 0) == "One came. Four stayed."
    assert excerpt(both, 1) == EXCERPTS_TEXT


def test_excerpts_follow_their_document() -> None:
    examples = list(with_excerpts([THREE, Example("y", "No rationale.", 0)], (0, 1, 2, 9)))
    assert [e.id for e in examples] == ["x", "x#0", "x#1", "y"]
    assert [e.label for e in examples] == [2, 2, 2, 0]
    assert (examples[1].text, examples[1].text_b, examples[1].rationale) == (
        "Three was better.",
        "a || b",
        None,
    )
    assert list(with_excerpts([THREE], ())) == [THREE]


def test_excerpts_alone_leave_documents_out() -> None:
    plain = Example("y", "No rationale.", 0)
    whole = Example("z", "All of it.", 1, rationale=((0, 9),))
    examples = with_excerpts([THREE, plain, whole], (0, 2), alone=True)
    assert [(e.id, e.text) for e in examples] == [
        ("x#0", "Three was better."),
        ("x#2", EXCERPTS_TEXT),
        ("y", "No rationale."),
        ("z#0", "All of it."),
    ]

"""What a card compares a model with."""

from __future__ import annotations

from typing import Any

from faithbench.core.types import Answer, Example
from faithbench.data.dataset import Dataset
from faithbench.training.card import majority_scores
from tests.support.builders import make_task


def test_the_majority_is_train_s_and_judged_on_test() -> None:
    """Train has two of class 1, test one in four: accuracy .25, F1 of 0 and 2 * 1 / (1 + 4)."""
    train, test = labelled([1, 1, 0]), labelled([1, 0, 0, 0])
    expected = {"accuracy": 0.25, "macro_f1": 0.2, "matthews": 0.0}
    assert majority_scores(train, test) == expected
    # A tie goes to the first class.
    assert majority_scores(labelled([1, 0]), test) == {
        "accuracy": 0.75,
        "macro_f1": 0.4286,
        "matthews": 0.0,
    }


def test_no_answer_is_the_majority_of_questions_without_one() -> None:
    answered = Example("a", "a film", 0, "what", answers=(Answer(2, "film"),))
    unanswered = [Example(f"n{n}", "a film", 1, "who") for n in range(3)]
    both = {"kind": "qa", "labels": ["answerable", "no_answer"]}
    data = dataset([answered, *unanswered], **both)
    assert majority_scores(data, data) == {"exact_match": 0.75, "f1": 0.75}
    only = dataset([answered], kind="qa", labels=["answerable"])
    assert majority_scores(only, only) is None


def labelled(labels: list[int]) -> Dataset:
    return dataset([Example(f"e{n}", "a film", label) for n, label in enumerate(labels)])


def dataset(examples: list[Example], **changes: Any) -> Dataset:
    return Dataset(
        make_task(hub=None, **changes), "folder", "test", tuple(examples), "", "none", False
    )

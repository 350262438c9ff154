"""Choices: softmax over the logits of their rows, with logits that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from faithbench.core.types import Attribution, Encoding, Example, Floats, TokenRow
from faithbench.data.kinds import KINDS
from faithbench.data.kinds.multiple_choice import MULTIPLE_CHOICE, choice_log_probabilities
from faithbench.data.windows import erased_rows, fold, row_of_choice

LABELS = ("A", "B", "C")


class Planted:
    """A network whose logit of a row is the sum of its token ids, divided by 10."""

    def log_probabilities(self, rows: Sequence[TokenRow], output: str = "logits") -> Floats:
        return np.array([[ids.sum() / 10] for ids, _ in rows])


def joint(label: int = 1) -> Encoding:
    """[CLS]=0, the text 5 6, [SEP]=0; the choices 1, 2 3 and 4, each with its [SEP]."""
    ids = np.array([0, 5, 6, 0, 1, 0, 2, 3, 0, 4, 0])
    own = ([4, 5], [6, 7, 8], [9, 10])
    return Encoding(
        example=Example("e", "five six", label, choices=("one", "two three", "four")),
        ids=ids,
        types=np.array([0] * 4 + [1] * 7),
        erasable=np.isin(np.arange(11), (1, 2)),
        words=np.array([-1, 0, 1] + [-1] * 8),
        spans=((0, 0), (0, 4), (5, 8), *((0, 0),) * 8),
        word_spans=((0, 4), (5, 8)),
        truncated=0,
        windows=tuple(np.array([0, 1, 2, 3, *places]) for places in own),
        joint=True,
    )


def test_the_likeliest_choice_and_its_probability() -> None:
    """Logits 1.2, 1.6 and 1.5."""
    (found,) = MULTIPLE_CHOICE.predict(Planted(), [joint()], LABELS)
    total = sum(math.exp(logit) for logit in (1.2, 1.6, 1.5))
    assert (found.target, found.right) == (1, True)
    assert math.exp(found.log_probability) == pytest.approx(math.exp(1.6) / total)
    assert MULTIPLE_CHOICE.predict(Planted(), [joint(0)], LABELS)[0].right is False


def test_examples_may_have_different_numbers_of_choices() -> None:
    rows = [(np.array([n]), np.array([0])) for n in (0, 0, 10, 10, 10)]
    two, three = choice_log_probabilities(Planted(), [rows[:2], rows[2:]])
    np.testing.assert_allclose(np.exp(two), [0.5, 0.5])
    np.testing.assert_allclose(np.exp(three), [1 / 3] * 3)


@pytest.mark.parametrize("operator", ["mask", "delete"])
def test_a_token_of_the_text_goes_from_all_rows(operator: str) -> None:
    """The planted logits all fall alike, so no probability moves."""
    encoding = joint()
    keep = np.ones(11, dtype=bool)
    keep[1] = False
    rows = erased_rows(encoding, keep, operator, 9)
    ids = [[0, 9, 6, 0], [0, 6, 0]][operator == "delete"]
    assert [row.tolist() for row, _ in rows] == [[*ids, 1, 0], [*ids, 2, 3, 0], [*ids, 4, 0]]
    found = MULTIPLE_CHOICE.evaluate(Planted(), [rows], [encoding], [1], LABELS)
    total = sum(math.exp(logit) for logit in (0.1, 0.5, 0.4))
    assert found.probability[0] == pytest.approx(math.exp(0.5) / total)
    assert found.kept.tolist() == [True]
    assert MULTIPLE_CHOICE.finds_labels(Planted(), [rows], [joint(2).example]) == [False]


def test_the_row_of_a_choice_has_the_others_with_it() -> None:
    row = row_of_choice(joint(), 1)
    assert row.ids.tolist() == [0, 5, 6, 0, 2, 3, 0] and row.choice == 1
    assert [other.ids.tolist() for other in row.others] == [[0, 5, 6, 0, 1, 0], [0, 5, 6, 0, 4, 0]]
    assert all(np.flatnonzero(r.erasable).tolist() == [1, 2] for r in (row, *row.others))
    scores = Attribution(row, 1, np.array([9.0, 1, 2, 9, 7, 8, 9]), 0.0, 0, 0)
    (whole,) = fold([joint()], [scores])
    assert whole.every_score.tolist() == [9, 1, 2, 9, 0, 0, 7, 8, 9, 0, 0]
    assert whole.scores.tolist() == [1, 2]


def test_names_scores_and_the_best_constant() -> None:
    examples = [replace(joint().example, label=label) for label in (1, 1, 0)]
    assert MULTIPLE_CHOICE.describe(LABELS, joint(), 1) == "B: two three"
    assert MULTIPLE_CHOICE.name_truth(LABELS, 2) == "C"
    assert MULTIPLE_CHOICE.score([1, 0, 0], examples, LABELS) == {"accuracy": pytest.approx(2 / 3)}
    assert MULTIPLE_CHOICE.majority(examples, examples[:1], LABELS) == {"accuracy": 1.0}
    assert {MULTIPLE_CHOICE.neighbour_class(target) for target in (0, 1, 2)} == {0}
    assert MULTIPLE_CHOICE.training_targets(joint()) == (1,)
    assert KINDS["multiple-choice-qa"].texts == 2

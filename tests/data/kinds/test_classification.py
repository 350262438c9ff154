"""Classes: predictions of one and of several windows, and the scores of a model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from faithbench.core.types import Encoding, Example
from faithbench.data.kinds.classification import (
    CLASSIFICATION,
    PAIR,
    class_log_probabilities,
    class_scores,
)

LABELS = ("dull", "good")


class Table:
    """Answers rows by their first token: its class probabilities are known by hand."""

    def __init__(self, *rows: tuple[float, ...]) -> None:
        self.answers = np.log(np.array(rows))

    def log_probabilities(self, rows, output: str = "logits") -> np.ndarray:
        assert output == "logits"
        return self.answers[[int(ids[0]) for ids, _ in rows]]


def encoding(token: int, label: int = 0, windows: tuple[np.ndarray, ...] = ()) -> Encoding:
    ids = np.array([token, token + 1])
    return Encoding(
        example=Example(f"e{token}", "a b", label),
        ids=ids,
        types=np.zeros_like(ids),
        erasable=np.ones(2, dtype=bool),
        words=np.arange(2),
        spans=((0, 1), (2, 3)),
        word_spans=((0, 1), (2, 3)),
        truncated=0,
        windows=windows,
    )


def test_the_likeliest_class_is_predicted() -> None:
    table = Table((0.25, 0.75), (0.5, 0.5))
    first, second = CLASSIFICATION.predict(table, [encoding(0, 1), encoding(1, 1)], LABELS)
    assert (first.target, first.right) == (1, True)
    assert first.log_probability == pytest.approx(math.log(0.75))
    assert (second.target, second.right) == (0, False), "ties go to the first class"


def test_windows_are_joined_by_their_mean_probability() -> None:
    table = Table((0.2, 0.8), (0.6, 0.4))
    rows = [(np.array([token]), np.array([0])) for token in (0, 1)]
    joined = np.exp(class_log_probabilities(table, [rows, rows[:1]]))
    np.testing.assert_allclose(joined, [[0.4, 0.6], [0.2, 0.8]])


def test_what_is_left_of_a_prediction() -> None:
    table = Table((0.25, 0.75), (0.9, 0.1))
    rows = [[(np.array([token]), np.array([0]))] for token in (0, 1)]
    outputs = CLASSIFICATION.evaluate(table, rows, [encoding(0)] * 2, [1, 1], LABELS)
    np.testing.assert_allclose(outputs.probability, [0.75, 0.1])
    assert outputs.kept.tolist() == [True, False]
    examples = [Example("a", "a", 1), Example("b", "b", 1)]
    assert CLASSIFICATION.finds_labels(table, rows, examples) == [True, False]


def test_scores_by_hand() -> None:
    scores = class_scores([0, 1, 1, 1], [0, 0, 1, 1], 2)
    assert scores["accuracy"] == 0.75
    assert scores["macro_f1"] == pytest.approx((2 / 3 + 0.8) / 2)
    assert scores["matthews"] == pytest.approx(1 / math.sqrt(3))


def test_the_largest_class_is_the_constant_to_beat() -> None:
    train = [Example(str(i), "a", label) for i, label in enumerate((1, 0, 1, 0))]
    test = [Example(str(i), "a", label) for i, label in enumerate((0, 0, 0, 1))]
    assert CLASSIFICATION.majority(train, test, LABELS)["accuracy"] == 0.75, "ties to the first"


def test_names() -> None:
    assert CLASSIFICATION.name_target(LABELS, 1) == "good"
    assert CLASSIFICATION.name_target(LABELS, 7) == "7"
    assert (PAIR.name, PAIR.texts, PAIR.network) == ("pair", 2, CLASSIFICATION.network)

"""A student beside its teacher: predictions from kept tokens, and falls, worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.erasure import erase, top_count
from faithbench.core.types import Encoding, Example, rank
from faithbench.metrics.faithfulness import log_odds
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.studies.reproduction.measures.pairs import (
    answers,
    own_readings,
    same_prediction,
    student_labels,
)
from tests.support.jobs import TEXTS
from tests.support.students import known, put_student

SHORT = [text for text in TEXTS if len(text) < 60]


@pytest.fixture(scope="module")
def model(tiny_model: Any) -> Model:
    return known(tiny_model())


def encodings_of(model: Model, texts: Sequence[str] = SHORT) -> list[Encoding]:
    return [encode(model, Example(f"e{n}", text, 0)) for n, text in enumerate(texts)]


def scores_of(encodings: Sequence[Encoding], seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=int(one.erasable.sum())) for one in encodings]


def logits(session: Session, encoding: Encoding, keep: Sequence[int]) -> np.ndarray:
    """Ask the model for one text of which only some erasable tokens are kept."""
    kept = np.zeros(int(encoding.erasable.sum()), dtype=bool)
    kept[list(keep)] = True
    row = erase(encoding, kept, "mask", session.model.erasure_id("mask"))
    return session.engine.log_probabilities([row])[0]


def test_both_predictions_are_those_from_the_top_tokens(model: Model) -> None:
    encodings = encodings_of(model)
    scores = {"student": scores_of(encodings, 1), "teacher": scores_of(encodings, 2)}
    with Session(model) as session:
        found = same_prediction(session, encodings, scores)
        for place, encoding in enumerate(encodings):
            classes = []
            for who in ("student", "teacher"):
                own = scores[who][place]
                top = rank(own)[: top_count(len(own), 30)]
                classes.append(int(logits(session, encoding, top.tolist()).argmax()))
            assert found[place] == float(classes[0] == classes[1])
        same = same_prediction(session, encodings, dict.fromkeys(scores, scores["student"]))
    assert same == [1.0] * len(encodings)


def test_what_is_labelled_is_kept_or_taken_away(model: Model) -> None:
    """One text of seven tokens: two are positive, one is negative, and four are neither."""
    encodings = encodings_of(model, ["the film is not very good ."])
    labels = [np.array([2, 3, 2, 2, 2, 4, 0])]
    teacher = np.array([0.1, 0.9, 0.2, 0.8, 0.3, 0.4, 0.0])
    drawn = np.array([0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.7])
    scores = {"student": [np.zeros(7)], "teacher": [teacher], "random": [drawn]}
    every = set(range(7))
    up = {"student": {1, 5}, "teacher": {1, 3}, "random": {0, 6}}
    down = {"student": {6}, "teacher": {6}, "random": {5}}
    with Session(model) as session:
        found = own_readings(session, encodings, [1], [0.6], labels, scores)
        said = {}
        for who, kept in up.items():
            only = logits(session, encodings[0], sorted(kept))
            said[who] = int(only.argmax())
            assert found[f"agreement {who}"] == [float(said[who] == 1)]
            for name, gone in (("positive", up), ("negative", down)):
                rest = logits(session, encodings[0], sorted(every - gone[who]))
                fall = log_odds(0.6) - log_odds(float(np.exp(rest[1])))
                assert found[f"{name} {who}"] == [pytest.approx(fall)]
    assert found["both own"] == [float(said["student"] == said["teacher"])]
    assert (found["count positive"], found["count negative"]) == ([2.0], [1.0])


def test_without_a_label_there_is_nothing_to_read(model: Model) -> None:
    """The first text has no positive token, the second none that is negative."""
    encodings = encodings_of(model, ["good film", "dull plot"])
    labels = [np.array([2, 1]), np.array([3, 2])]
    scores = dict.fromkeys(("student", "teacher", "random"), [np.array([0.1, 0.2])] * 2)
    with Session(model) as session:
        found = own_readings(session, encodings, [0, 0], [0.5, 0.5], labels, scores)
    for who in ("student", "teacher", "random"):
        assert [value is None for value in found[f"agreement {who}"]] == [True, False]
        assert [value is None for value in found[f"positive {who}"]] == [True, False]
        assert [value is None for value in found[f"negative {who}"]] == [False, True]
    assert found["both own"][0] is None and found["both own"][1] is not None


def test_answers_are_log_probabilities_of_each_mask(model: Model) -> None:
    encodings = encodings_of(model, ["good film", "the plot is dull"])
    keeps = [[np.ones(2, bool), np.zeros(2, bool)], [np.ones(4, bool), np.zeros(4, bool)]]
    with Session(model) as session:
        found = answers(session, encodings, keeps)
        assert found.shape == (2, 2, 2)
        assert found[1, 0] == pytest.approx(logits(session, encodings[1], [0, 1, 2, 3]))
        assert found[0, 1] == pytest.approx(logits(session, encodings[0], []))
    assert np.exp(found).sum(axis=2) == pytest.approx(np.ones((2, 2)))


def test_labels_are_those_of_erasable_tokens_whatever_their_company(
    model: Model, tmp_path: Path
) -> None:
    put_student(tmp_path, model, seeds=2)
    encodings = encodings_of(model)
    targets = [n % 2 for n in range(len(encodings))]
    together = student_labels(model, tmp_path, 0, encodings, targets)
    assert [len(labels) for labels in together] == [int(e.erasable.sum()) for e in encodings]
    assert {int(label) for labels in together for label in labels} <= set(range(5))
    for place in (0, 3, 7):
        (alone,) = student_labels(model, tmp_path, 0, [encodings[place]], [targets[place]])
        assert alone.tolist() == together[place].tolist()
    other = student_labels(model, tmp_path, 1, encodings, targets)
    assert any((a != b).any() for a, b in zip(together, other, strict=True))

"""Figures at each level: counted by hand, and by the network's own gradients."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from faithbench.core.types import Example
from faithbench.metrics.word_scores import WordScores
from faithbench.models.engine import Engine
from faithbench.testing import tiny_model
from faithbench.training.level_saliency import (
    class_figures,
    level_figures,
    marked_encodings,
    measure_levels,
    measure_removal,
)
from tests.support.builders import make_task
from tests.support.training import dataset

EXAMPLES = (
    Example("a", "the plot is very dull and bad", 1, rationale=((17, 21), (26, 29))),
    Example("b", "good film", 1, rationale=((0, 4),)),
    Example("c", "a great plot , not bad", 0),
)


def words(scores: list[float], marks: list[int]) -> WordScores:
    strings = tuple("abcdefgh"[: len(scores)])
    return WordScores(np.array(scores), strings, (), np.array(marks, dtype=bool))


def test_figures_by_hand() -> None:
    texts = [words([0.4, -0.1, 0.3, 0.0], [1, 0, 1, 1]), words([0.5, 0.1, -0.2], [0, 1, 0])]
    found = level_figures(texts)
    assert found.marked == 3 / 4 and found.unmarked == 1 / 3
    assert found.top1 == 1 / 2
    # All three marked words come first: area 1. In the second, one of two: (0 + .5) / 2.
    assert found.auprc == pytest.approx((1 + 0.25) / 2)


def test_texts_of_marked_words_alone_have_no_unmarked_ones() -> None:
    assert level_figures([words([0.4, -0.1], [1, 1])]).unmarked == 0


def test_class_figures_by_hand() -> None:
    found = class_figures([1, 1, 0, 0, 1], [1, 0, 1, 0, 1], positive=1)
    assert (found.precision, found.recall, found.accuracy) == (2 / 3, 2 / 3, 3 / 5)
    assert found.f1 == 2 / 3
    nothing = class_figures([0, 0], [0, 0], positive=1)
    assert (nothing.precision, nothing.recall, nothing.f1, nothing.accuracy) == (0, 0, 0, 1)


@pytest.mark.parametrize("architecture", ["cnn", "bert"])
def test_levels_of_a_model(architecture: str) -> None:
    model, data = tiny_model(architecture), dataset(make_task(hub=None), EXAMPLES)
    found = measure_levels(model, data, "gate")
    names = ["word", "intermediate"] + ["decision"] * (architecture == "cnn")
    assert list(found) == names
    for figures in found.values():
        assert 0 <= figures.marked <= 1 and 0 <= figures.auprc <= 1
    # Three marked words of two texts.
    assert found["word"].marked * 3 == pytest.approx(round(found["word"].marked * 3))
    # A text that comes twice changes no share.
    twice = (*EXAMPLES, *(replace(e, id=f"{e.id}2") for e in EXAMPLES))
    again = measure_levels(model, dataset(make_task(hub=None), twice), "gate")
    assert again["word"].marked == pytest.approx(found["word"].marked)
    assert again["word"].auprc == pytest.approx(found["word"].auprc)


def test_removal_deletes_the_rationale() -> None:
    model, data = tiny_model("cnn"), dataset(make_task(hub=None), EXAMPLES)
    found = measure_removal(model, data)
    encodings = marked_encodings(model, data)
    assert [e.example.id for e in encodings] == ["b", "a"]
    engine = Engine(model)
    marked = model.tokenizer.convert_tokens_to_ids(["dull", "bad", "good"])
    right = {"before": 0, "after": 0}
    for encoding in encodings:
        stays = ~np.isin(encoding.ids, marked)
        for name, keep in (("before", np.ones_like(stays)), ("after", stays)):
            row = (encoding.ids[keep], encoding.types[keep])
            right[name] += int(engine.log_probabilities([row]).argmax() == encoding.example.label)
    assert (found.before, found.after) == (right["before"] / 2, right["after"] / 2)
    if found.before:
        assert found.drop == pytest.approx((found.before - found.after) / found.before)

"""Salience as an explainer: word pieces of the evidence, and the statistics of a training split."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset
from faithbench.data.salience import FLOOR, textrank
from faithbench.explainers.protocol import assets_of, needs_training, reads_model
from faithbench.explainers.salience import Salience
from faithbench.explainers.selection import Selected
from faithbench.models.encoding import collate, encode
from faithbench.models.session import Session
from faithbench.testing.tiny import tiny_model as build_tiny
from tests.support.builders import make_task


def training(**changes: Any) -> Dataset:
    examples = (
        Example("a", "goodly film", 1, "dull"),
        Example("b", "good plot", 1, "dull"),
        Example("c", "bad film", 0, "very"),
        Example("d", "bad plot .", 0, "very"),
    )
    return Dataset(make_task(**changes), "folder", "train", examples, "f" * 64, "none", True)


def scores(explainer: Any, model: Any, example: Example, evidence: Any = "text") -> list[float]:
    batch = collate(model, [encode(model, example, evidence)], [0], [0])
    found: list[float] = explainer(Session(model), batch)[0].tolist()
    return found


def test_textrank_is_of_the_word_pieces_between_special_tokens(tiny_model: Any) -> None:
    found = scores(Salience(), tiny_model(), Example("a", "Goodly film is dull .", 0))
    pieces = ["good", "##ly", "film", "is", "dull", "."]
    np.testing.assert_allclose(found, [0, *textrank(pieces), 0], atol=1e-12)
    assert max(found) > min(found[1:-1]) > 0


def test_the_graph_is_of_the_evidence_alone(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "good film", 0, "the plot")
    uniform = Salience("uniform")
    assert scores(uniform, model, example, "text") == [0, 0.5, 0.5, 0, 0, 0, 0]
    assert scores(uniform, model, example, "text_b") == [0, 0, 0, 0, 0.5, 0.5, 0]
    assert scores(uniform, model, example, "both") == [0, 0.25, 0.25, 0, 0.25, 0.25, 0]


def test_ties_are_ties(tiny_model: Any) -> None:
    # Ten neighbours in a row: the middle ones are alike but for the last bits of their sums.
    found = scores(Salience(), tiny_model(), Example("a", " ".join(f"w{i}" for i in range(10)), 0))
    assert found[1:11] == found[10:0:-1]


def test_chi2_of_the_training_split_by_hand(tiny_model: Any) -> None:
    model = tiny_model()
    taught = Salience("chi2").with_training(training(), model)
    # good and bad tell the classes apart (chi-squared 4), film does not (0), the is unseen.
    found = scores(taught, model, Example("a", "the good bad film", 0))
    half, least = (1 - FLOOR) / 2 + FLOOR / 4, FLOOR / 4
    np.testing.assert_allclose(found, [0, least, half, half, least, 0], atol=1e-12)


def test_tfidf_counts_the_texts_that_may_be_erased(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "good dull", 0)
    first = Salience("tfidf").with_training(training(), model)
    second = Salience("tfidf").with_training(
        training(kind="pair", evidence="text_b", hub=None), model
    )
    both = Salience("tfidf").with_training(training(kind="pair", evidence="both", hub=None), model)
    rare, common = 1 + np.log(5), 1 + np.log(5 / 3)
    for taught, good, dull in [(first, common, rare), (second, rare, common), (both, 1, 1)]:
        found = scores(taught, model, example)
        expected = (1 - FLOOR) * good / (good + dull) + FLOOR / 2
        np.testing.assert_allclose(found, [0, expected, 1 - expected, 0], atol=1e-12)


def test_a_taught_one_has_the_same_settings_and_names_what_it_learned_from(
    tiny_model: Any,
) -> None:
    model = tiny_model()
    asked = Salience("tfidf")
    taught = asked.with_training(training(), model)
    assert needs_training(asked) and not needs_training(taught)
    assert not needs_training(Salience()) and not needs_training(Salience("uniform"))
    assert asdict(taught) == {"kind": "tfidf"}
    assert Selected("salience", taught).label == "salience:kind=tfidf"
    assert assets_of(taught, model) == {"train (folder, 4 rows)": "f" * 64}
    assert assets_of(Salience(), model) == {}
    assert not reads_model(taught)


def test_what_cannot_be_is_refused(tiny_model: Any) -> None:
    with pytest.raises(FaithbenchError, match="no kind of salience named 'chi'; did you mean"):
        Salience("chi")
    questions = training(kind="qa", hub=None)
    with pytest.raises(FaithbenchError, match="task mini has no classes; choose kind=tfidf"):
        Salience("chi2").with_training(questions, build_tiny(qa=True))
    with pytest.raises(FaithbenchError, match="salience 'tfidf' counts the terms"):
        scores(Salience("tfidf"), tiny_model(), Example("a", "good film", 0))

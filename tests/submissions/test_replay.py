"""Precomputed scores: given back by example and seed, rounded, and with their files' digests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from faithbench.core.types import Example
from faithbench.models.encoding import collate, encode
from faithbench.models.session import Session
from faithbench.run.attribute import explain, seed_of
from faithbench.submissions.replay import Replay, replay

SCORES = {"a": [[1.0, -2.0], [3.0, 4.0]], "b": [[0.123456789], [5.0]]}


@pytest.fixture
def batch(tiny_model):
    """Two texts of two tokens and of one, under the second of two seeds."""
    model = tiny_model()
    encodings = [encode(model, Example(name, text, 0)) for name, text in
                 (("a", "good film"), ("b", "dull"))]  # fmt: skip
    return collate(model, encodings, [0, 1], [seed_of(8, name) for name in ("a", "b")])


def test_scores_stand_at_the_tokens_that_may_be_erased(tiny_model, batch) -> None:
    explainer = replay(SCORES, 7, {})
    with Session(tiny_model()) as session:
        scores = explainer(session, batch)
    assert scores.tolist() == [[0, 3.0, 4.0, 0], [0, 5.0, 0, 0]]  # [CLS], tokens, [SEP], padding


def test_scores_are_rounded_as_rows_keep_them(tiny_model) -> None:
    explainer = replay(SCORES, 7, {})
    assert explainer.stored["b", seed_of(7, "b")] == (0.1234568,)
    assert explainer.stored["a", seed_of(7, "a")] == (1.0, -2.0)


def test_several_lists_are_several_seeds() -> None:
    assert replay(SCORES, 0, {}).stochastic
    assert not replay({"a": [[1.0]], "b": [[2.0]]}, 0, {}).stochastic


def test_an_answer_gets_its_scores_once(qa_model) -> None:
    example = Example("a", "the film is good", 0, "a plot")
    encoding = encode(qa_model, example)
    given = np.arange(1.0, 1 + int(encoding.erasable.sum()))
    explainer = replay({"a": [given]}, 0, {})
    indices = np.flatnonzero(encoding.erasable)
    target = (int(indices[0]), int(indices[-1]))
    batch = collate(qa_model, [encoding], [target], [seed_of(0, "a")])
    with Session(qa_model) as session:
        scores = explain(session, explainer, batch)[0]
    assert scores[encoding.erasable].tolist() == given.tolist()
    assert torch.count_nonzero(scores) == len(given)


def test_digests_and_seconds_are_kept(tiny_model) -> None:
    explainer = replay(SCORES, 0, {"explainer.py": "ab"}, 2.5)
    assert explainer.assets(tiny_model()) == {"explainer.py": "ab"}
    assert explainer.seconds == 2.5 and Replay.replayed
    assert replace(explainer, seconds=None).seconds is None

"""Random words: scores that favour no word."""

from __future__ import annotations

from typing import Any

import numpy as np

from faithbench.testing.conformance import check_explainer
from faithbench.training.fresh.random_words import RandomWords


def test_random_words_keep_the_rules_of_explainers() -> None:
    check_explainer(RandomWords(), architectures=("bert",))


def test_a_word_has_one_number_however_many_pieces(tiny_model: Any, batch_of: Any) -> None:
    """`goodly` is two pieces and is first as often as the other words: 200 draws of 3."""
    model = tiny_model()
    batch = batch_of(model, ["goodly film plot"] * 200)
    scores = RandomWords()(None, batch).numpy()
    assert (scores[:, [0, 2, 5]] == 0).all(), "[CLS], ##ly and [SEP]"
    words = scores[:, [1, 3, 4]]
    assert (words > 0).all() and (words < 1).all()
    firsts = np.bincount(words.argmax(axis=1))
    assert firsts.min() > 45, firsts

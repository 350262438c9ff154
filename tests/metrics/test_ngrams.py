"""Lexical similarity: by hand, as the released code has it, and as a plain loop has it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from faithbench.metrics.ngrams import Similarity, ngrams_of, words_in

STORED = json.loads(
    (Path(__file__).parents[1] / "reference/golden/metrics/l2e_stability.json").read_text()
)


def among(texts: list[str]) -> Similarity:
    return ngrams_of(texts).among(np.arange(len(texts)))


def plainly(a: str, b: str, released: bool = False) -> float:
    """Count one pair with sets of tuples."""
    x, y = words_in(a), words_in(b)
    total = 0.0
    for n in range(1, 5):
        left = {x[i : i + n] for i in range(len(x) - n + 1)}
        right = {y[i : i + n] for i in range(len(y) - n + 1)}
        total += len(left & right) / len(left | right) if left | right else 0.0
    return total / max(1, min(4, len(x), len(y))) if released else total


def test_by_hand() -> None:
    found = among(["A b c", "a B d", "e"]).block(0, 3)
    # n=1: {a b c} {a b d}: 2/4; n=2: {ab bc} {ab bd}: 1/3; n=3: 0/2; n=4: none of none.
    assert found[0, 1] == pytest.approx(2 / 4 + 1 / 3, abs=1e-12)
    assert found[1, 0] == found[0, 1]
    assert found[0, 2] == 0
    assert found[0, 0] == pytest.approx(3)  # no document of three words has a 4-gram
    assert found[2, 2] == pytest.approx(1)


def test_words_are_lower_cased_and_punctuation_counts() -> None:
    assert words_in("It 's DON'T, ok.") == ("it", "'", "s", "don't", ",", "ok", ".")
    assert among(["Good .", "good !"]).block(0, 1)[0, 1] == pytest.approx(1 / 3)


def test_an_ngram_does_not_reach_into_the_next_document() -> None:
    # "b c" is a pair of the third document only.
    found = among(["a b", "c d", "b c"]).block(0, 3)
    assert found[0, 2] == pytest.approx(1 / 3)
    assert found[1, 2] == pytest.approx(1 / 3)


@pytest.mark.parametrize("pair", STORED["ngram"])
def test_the_released_mean(pair) -> None:
    texts = [" ".join(pair["a"]), " ".join(pair["b"])]
    assert among(texts).block(0, 1, released=True)[0, 1] == pytest.approx(pair["sim"], abs=1e-12)


@pytest.mark.parametrize("released", [False, True])
def test_all_pairs_as_a_plain_loop_counts_them(released: bool) -> None:
    # Ninety documents of few words: many n-grams are common enough for the dense way.
    draw = random.Random(0)
    texts = [
        " ".join(draw.choice(["the", "a", "of", "w1", "w2", f"r{i}"]) for _ in range(i % 9))
        for i in range(90)
    ]
    pairs = among(texts)
    assert pairs.tables[0].common.shape[1] > 2 and pairs.tables[3].common.shape[1] == 0
    found = np.vstack([pairs.block(s, s + 40, released=released) for s in (0, 40, 80)])
    wanted = [[plainly(a, b, released) for b in texts] for a in texts]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12)


def test_some_documents_of_many() -> None:
    texts = ["a b c", "x y", "a b", "c a b"]
    part = ngrams_of(texts).among(np.array([3, 0])).block(0, 2)
    assert part[0, 1] == pytest.approx(plainly("c a b", "a b c"))


@pytest.mark.parametrize("texts", [[], [""], ["", "  "], ["a"], ["", "a b c d e"]])
def test_documents_without_words_are_like_nothing(texts: list[str]) -> None:
    found = among(texts).block(0, len(texts))
    assert found.shape == (len(texts), len(texts))
    assert (found[~np.eye(len(texts), dtype=bool)] == 0).all()

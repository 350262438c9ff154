"""Planted words: one to a text, found by what looks for it, and by chance as often as texts say."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.testing.planted import (
    WORDS,
    chance_of_first,
    planted_data,
    puts_first,
    saved_model,
)


def test_each_text_has_one_word_that_decides_and_a_seed_repeats_them() -> None:
    data = planted_data(30, seed=5)
    for example in data.examples:
        words = example.text.split()
        assert [word for word in words if word in WORDS] == [WORDS[example.label]]
        assert 9 <= len(words) <= 15
    assert planted_data(30, seed=5).examples == data.examples
    assert planted_data(30, seed=6).examples != data.examples
    assert chance_of_first(data) == pytest.approx(
        sum(1 / len(example.text.split()) for example in data.examples) / 30
    )


def test_the_word_must_be_first_alone() -> None:
    tokens = ["w1", "good", "w2"]
    assert puts_first(tokens, [0.1, 0.2, 0.0])
    assert not puts_first(tokens, [0.2, 0.2, 0.0]) and not puts_first(tokens, [0.3, 0.2, 0.0])


def test_a_saved_model_is_another_for_each_seed(tmp_path: Path) -> None:
    digests = set()
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        digests.add(saved_model(folder, seed, steps=1).sha256)
    assert len(digests) == 2

"""The list of stop-words: lower-cased, cut as words are cut, no word twice."""

from __future__ import annotations

from collections import Counter

from faithbench import stopwords
from faithbench.ngrams import words_in
from faithbench.stopwords import is_stop_word, stop_words


def test_the_list_has_each_word_once_as_words_are_cut() -> None:
    lines = stopwords._FILE.read_text().splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert 150 <= len(words) <= 180 and set(words) == stop_words()
    assert all(words_in(word) == (word,) for word in words)


def test_function_words_are_on_it_and_content_is_not() -> None:
    assert all(map(is_stop_word, ["the", "The", "n't", "don\u2019t", "s", "Of"]))
    assert not any(map(is_stop_word, ["film", "good", "bad", "great", ".", "'", ""]))

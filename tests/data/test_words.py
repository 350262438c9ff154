"""Words are the same for every tokenizer: where they are, and which one a token belongs to."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.data import words as stopwords
from faithbench.data.words import is_stop_word, stop_words, word_spans, words_of_tokens
from faithbench.metrics.ngrams import words_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("good film", ["good", "film"]),
        ("I don't, really.", ["I", "don't", ",", "really", "."]),
        ("they\u2019re well-made", ["they\u2019re", "well-made"]),
        ("does n't work", ["does", "n't", "work"]),
        ("'quoted' - dash", ["'", "quoted", "'", "-", "dash"]),
        ("wait... what?!", ["wait", ".", ".", ".", "what", "?", "!"]),
        ("rock'n'roll, state-of-the-art", ["rock'n'roll", ",", "state-of-the-art"]),
        ("é1_a\u00a0ß\tΩ\n", ["é1_a", "ß", "Ω"]),
        ("$3.50", ["$", "3", ".", "50"]),
        ("日本語。", ["日本語", "。"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_words_of_a_text(text: str, words: list[str]) -> None:
    assert [text[start:end] for start, end in word_spans(text)] == words


def test_spans_are_character_offsets() -> None:
    assert word_spans(" A dull, don't-see film") == ((1, 2), (3, 7), (7, 8), (9, 18), (19, 23))


def test_pieces_of_a_contraction_share_its_word() -> None:
    text = "I don't, really."
    tokens = [(0, 0), (0, 1), (2, 5), (5, 6), (6, 7), (7, 8), (9, 13), (13, 15), (15, 16), (0, 0)]
    assert words_of_tokens(tokens, word_spans(text)).tolist() == [-1, 0, 1, 1, 1, 2, 3, 3, 4, -1]


def test_a_byte_level_token_begins_with_its_space() -> None:
    """As GPT-2 has it: ` film` is (4, 9), and the space belongs to no word."""
    spans = word_spans("good film  !")
    assert spans == ((0, 4), (5, 9), (11, 12))
    tokens = [(0, 4), (4, 9), (9, 10), (10, 12)]
    assert words_of_tokens(tokens, spans).tolist() == [0, 1, -1, 2]


def test_a_token_over_two_words_goes_to_the_first() -> None:
    assert words_of_tokens([(0, 9), (3, 6), (4, 6)], ((0, 4), (5, 9))).tolist() == [0, 0, 1]


def test_no_words_and_no_tokens() -> None:
    assert words_of_tokens([(0, 0), (0, 1)], ()).tolist() == [-1, -1]
    nothing = words_of_tokens([], ((0, 4),))
    assert (nothing.shape, nothing.dtype.name) == ((0,), "int64")


@settings(deadline=None)
@given(st.text(alphabet="ab'- .,é日\n"), st.data())
def test_any_token_gets_the_word_of_its_first_character_in_a_word(
    text: str, data: st.DataObject
) -> None:
    spans = word_spans(text)
    # Special tokens are (0, 0); all others hold some characters.
    tokens = data.draw(st.lists(st.just((0, 0)) | pieces(len(text))))
    expected = [first_word(token, spans) for token in tokens]
    assert words_of_tokens(tokens, spans).tolist() == expected
    # Words do not overlap, and leave out nothing but space.
    assert re.sub(r"\s", "", text) == "".join(text[start:end] for start, end in spans)


def pieces(length: int) -> st.SearchStrategy[tuple[int, int]]:
    edges = st.integers(0, length)
    return st.tuples(edges, edges).filter(lambda piece: piece[0] < piece[1])


def first_word(token: tuple[int, int], spans: tuple[tuple[int, int], ...]) -> int:
    for character in range(*token):
        for word, (start, end) in enumerate(spans):
            if start <= character < end:
                return word
    return -1


def test_the_list_has_each_word_once_as_words_are_cut() -> None:
    lines = stopwords._FILE.read_text().splitlines()
    words = [word for line in lines if not line.startswith("#") for word in line.split()]
    assert [word for word, count in Counter(words).items() if count > 1] == []
    assert 150 <= len(words) <= 180 and set(words) == stop_words()
    assert all(words_in(word) == (word,) for word in words)


def test_function_words_are_on_it_and_content_is_not() -> None:
    assert all(map(is_stop_word, ["the", "The", "n't", "don\u2019t", "s", "Of"]))
    assert not any(map(is_stop_word, ["film", "good", "bad", "great", ".", "'", ""]))

"""Sentences: where a text is cut, and where a full stop is only part of a word."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.data.sentences import sentence_spans
from faithbench.data.words import word_spans


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "text",
    [
        "It was finished. | He left! | Did he? | Yes.",
        "Dr. Spear met Mr. Andrews. | They spoke, e.g. about J. R. Smith vs. Jones.",
        "A dose of 1.3 mg was given. | No. 5 had 0.5 mg, cf. Table 2, see Fig. 3.",
        "He said no. | Five of 6 agreed.",
        "The U.S. Army came. | It left at 5 p.m. exactly.",
        "We waited ... and waited. | Then ... | It came.",
        '"Stop!" he said. | "I will." | (She did not.) | [Nor they.] | \u201cOh.\u201d | The end.',
        "Prices rose (by 5 %. or so), Inc. magazine wrote. | 12 fell.",
        "Is it ?! | It is .",
        # As tokenised text has it, with capitals and without.
        "Group B . | The other ( n = 12 ) did well ( P < 0.05 ) . | ABSTRACT.METHODS : None .",
        "the film is dull . | i hated it ! ! | mr . smith , l . i . e . and . . . well , no .",
        "so it was . ) | and on . | the end",
        "etc . , which is not . | the end",
    ],
)
def test_where_sentences_end(text: str) -> None:
    parts = text.split(" | ")
    assert split(" ".join(parts)) == parts


def test_a_line_break_always_ends_one() -> None:
    text = "the bait .\n.. excuse me , characters\r\n\r\n  and a blank , \n Mr.\nThorndike "
    assert split(text) == [
        "the bait .", ".. excuse me , characters", "and a blank ,", "Mr.", "Thorndike",
    ]  # fmt: skip


def test_nothing_to_split() -> None:
    assert sentence_spans("") == sentence_spans(" \n\t ") == ()
    assert sentence_spans(" . ! \n") == ((1, 4),)
    assert split("\u4f60\u597d. \u4e16\u754c.") == ["\u4f60\u597d.", "\u4e16\u754c."]


@settings(deadline=None)
@given(st.text(alphabet="aB1 .!?\n\"')(\u2026,\u00a0\u2028", max_size=40))
def test_every_word_is_in_exactly_one(text: str) -> None:
    spans = sentence_spans(text)
    for start, end in word_spans(text):
        assert sum(left <= start and end <= right for left, right in spans) == 1
    assert all(a < b for a, b in spans)
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert all(part == part.strip() for part in split(text))

"""Words of a text, the same for every tokenizer: runs of letters, or one punctuation mark.

And the list of stop words.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np

from faithbench.core.types import Ints, Span

# An apostrophe or hyphen inside a word belongs to it: don't, n't, well-made.
_WORD = re.compile(r"\w+(?:['\u2019\-]\w+)*|[^\w\s]")


def word_spans(text: str) -> tuple[Span, ...]:
    """Return the character span of each word, in reading order."""
    return tuple(match.span() for match in _WORD.finditer(text))


def words_of_tokens(offsets: list[Span], spans: tuple[Span, ...]) -> Ints:
    """Give each token the index of the word holding its first character, -1 where there is none.

    Byte-level tokenizers put the space before a word into its token, so a token is placed
    by the first of its characters that lies in a word.
    """
    starts = np.array([start for start, _ in spans] or [0])
    words = np.full(len(offsets), -1, dtype=np.int64)
    for token, (start, end) in enumerate(offsets):
        # Words before the last one that begins at or before the token have ended by its start.
        first = max(int(np.searchsorted(starts, start, side="right")) - 1, 0)
        for word in range(first, len(spans)):
            if spans[word][0] >= end:
                break
            if spans[word][1] > start:
                words[token] = word
                break
    return words


_FILE = Path(__file__).with_name("stopwords.txt")


@cache
def stop_words() -> frozenset[str]:
    """Return the stop words that are shipped with the package, in lower case."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def is_stop_word(word: str) -> bool:
    """Return whether a word is a stop word, in any case and with any apostrophe."""
    return word.lower().replace("\u2019", "'") in stop_words()


def is_content_word(word: str) -> bool:
    """Return whether a word is neither a stop word nor a punctuation mark."""
    return not is_stop_word(word) and any(character.isalnum() for character in word)

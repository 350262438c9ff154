"""English words that say how a sentence is built, not what it is about."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("stopwords.txt")


@cache
def stop_words() -> frozenset[str]:
    """Return the list shipped with the project, lower-cased."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def is_stop_word(word: str) -> bool:
    """Say whether a word, as `faithbench.words` cuts it, is on the list, in any case or font."""
    return word.lower().replace("\u2019", "'") in stop_words()

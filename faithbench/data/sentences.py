"""Sentences of a text, found by line breaks and full stops, without a model."""

from __future__ import annotations

import re

from faithbench.core.types import Span

# What ends a sentence, what may open one, and what never begins one.
_MARKS = ".!?\u2026"
_OPENING = "\"'\u201c\u2018(["
_NO_START = frozenset(f",;:)]}}%/-\u2013\u2014{_MARKS}{_OPENING}")

# Marks that end a sentence, the spaced ones of tokenised text too, and what closes after them.
_END = re.compile(
    rf"[{_MARKS}]+(?:[ \t]+[{_MARKS}]+)*[\"'\u201d\u2019)\]]*(?:[ \t]+[\u201d)\]])*(?=\s)"
)
# A line; the first character after a mark that is no space, quote or bracket; "U.S" or "e.g".
_LINE = re.compile(r"[^\r\n]+")
_NEXT = re.compile(rf"[\s{re.escape(_OPENING)}]*(\S)")
_DOTTED = re.compile(r"(?:\w\.)+\w")

# A full stop after these is part of the word; after the second list, only before a number.
# fmt: off
_ABBREVIATIONS = frozenset((
    "mr", "mrs", "ms", "dr", "prof", "st", "rev", "hon", "gen", "col", "capt", "lt", "sgt",
    "gov", "sen", "rep", "mt", "vs", "cf", "viz", "al", "ssp",
))
# fmt: on
_BEFORE_NUMBERS = frozenset(
    ("no", "nos", "fig", "figs", "eq", "eqs", "vol", "pp", "ca", "approx", "ref", "refs", "sec")
)


def sentence_spans(text: str) -> tuple[Span, ...]:
    """Return the character span of each sentence, without the space around it.

    A line break always ends a sentence (ERASER's texts have one sentence per line). Within a line,
    a mark ends one if space and a likely start follow it: not a small letter, in a text that has
    capitals. Every word of `word_spans` lies in exactly one sentence, because sentences are cut at
    white space only.
    """
    has_capitals = text != text.lower()
    spans = []
    for line in _LINE.finditer(text):
        start = line.start()
        for mark in _END.finditer(text, *line.span()):
            following = _NEXT.match(text, mark.end(), line.end())
            first = following[1] if following else ""
            if _ends(text[start : mark.start()], mark[0], first, has_capitals):
                spans.append((start, mark.end()))
                start = mark.end()
        spans.append((start, line.end()))
    trimmed = (_trimmed(text, start, end) for start, end in spans)
    return tuple((start, end) for start, end in trimmed if start < end)


def _ends(sentence: str, marks: str, first: str, has_capitals: bool) -> bool:
    """Return whether the marks end the sentence before them; `first` is the character that follows.

    Opening quotes and brackets are skipped, so that one of them is first only where nothing else
    follows on the line.
    """
    if not first or first in _NO_START or not any(c.isalnum() for c in sentence):
        return False
    trails_off = marks.count(".") > 1 or "\u2026" in marks
    if first.islower() and (has_capitals or trails_off):
        return False
    return marks[0] != "." or trails_off or not _abbreviated(sentence, first)


def _abbreviated(sentence: str, first: str) -> bool:
    """Return whether a full stop after these words belongs to the last of them, as in "Dr."."""
    word = sentence.rsplit(maxsplit=1)[-1].lstrip(_OPENING)
    if len(word) == 1 and word.isalpha():
        # An initial; but "group B ." of tokenised text ends its sentence.
        return word.islower() or not sentence[-1].isspace()
    small = word.lower()
    numbered = small in _BEFORE_NUMBERS and first.isdigit()
    return small in _ABBREVIATIONS or numbered or _DOTTED.fullmatch(word) is not None


def _trimmed(text: str, start: int, end: int) -> Span:
    sentence = text[start:end]
    before = len(sentence) - len(sentence.lstrip())
    return start + before, start + len(sentence.rstrip())

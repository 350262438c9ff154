"""A text on coloured ground, in a terminal or a notebook: the stronger, the deeper the colour."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from rich.text import Text

from faithbench.core.text import without_controls
from faithbench.core.types import Encoding, Floats
from faithbench.data.words import word_spans

# Tokenizers cut punctuation off, and say not where a space was.
_CLOSING = tuple(".,;:!?)]}%")
_OPENING = tuple("([{$")


def heat_map(encoding: Encoding, scores: Floats) -> Text:
    """Colour a text by its tokens' scores: orange for the prediction, blue against it.

    The darker, the stronger, relative to the strongest token of the text. Colour-blind readers,
    too, can tell the two hues apart. The second text of a pair follows on a line of its own.
    """
    whole, spans = shaded_spans(encoding, scores)
    # A terminal would obey control characters, and Text would drop some and shift the rest.
    text = Text(without_controls(whole, keep="\t\n"))
    for start, end, strength in spans:
        text.stylize(_shade(strength), start, end)
    return text


def words_heat_map(words: Sequence[tuple[str, float]]) -> Text:
    """Colour words by their scores, as `heat_map` does, where the text itself is not at hand."""
    strongest = max((abs(score) for _, score in words), default=0.0) or 1.0
    text = Text()
    for word, score in words:
        joined = word in _CLOSING or text.plain[-1:] in ("", *_OPENING)
        text.append("" if joined else " ")
        text.append(without_controls(word), _shade(score / strongest))
    return text


def shaded_spans(encoding: Encoding, scores: Floats) -> tuple[str, list[tuple[int, int, float]]]:
    """Return the text, and start, end and score of each token; the strongest score is 1 or -1.

    The second text of a pair follows on a line of its own.
    """
    example = encoding.example
    texts = [text for text in (example.text, example.text_b) if text is not None]
    strongest = float(abs(scores).max()) or 1.0  # all scores 0: any scale will do
    # Words are numbered through both texts, but the spans of each text start at 0.
    words_before = len(word_spans(example.text))
    spans = []
    for token, score in zip(np.flatnonzero(encoding.erasable), scores, strict=True):
        start, end = encoding.spans[token]
        shift = len(example.text) + 1 if encoding.words[token] >= words_before else 0
        spans.append((int(start) + shift, int(end) + shift, float(score) / strongest))
    return "\n".join(texts), spans


def heat_map_html(encoding: Encoding, scores: Floats) -> str:
    """Colour a text as `heat_map` does, in HTML that needs no style sheet."""
    text, spans = shaded_spans(encoding, scores)
    parts, end_of_last = [], 0
    for start, end, strength in sorted(spans):
        # Some tokenizers cut inside a character: its tokens then share a place in the text.
        if start < end_of_last or start == end:
            continue
        colour = _colour(strength)
        style = f' style="color: black; background: {colour}"' if colour else ""
        parts.append(_with_breaks(text[end_of_last:start]))
        parts.append(f'<span{style} title="{strength:+.2f}">{_with_breaks(text[start:end])}</span>')
        end_of_last = end
    return "".join([*parts, _with_breaks(text[end_of_last:])])


def _with_breaks(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _shade(strength: float) -> str:
    colour = _colour(strength)
    return f"black on {colour}" if colour else ""


def _colour(strength: float) -> str:
    """Blend white into orange (positive) or blue (negative), for black text on top."""
    if abs(strength) < 0.05:  # too pale to see
        return ""
    full = (230, 120, 20) if strength > 0 else (60, 130, 220)
    share = min(1.0, abs(strength))
    red, green, blue = (round(255 - share * (255 - c)) for c in full)
    return f"#{red:02x}{green:02x}{blue:02x}"

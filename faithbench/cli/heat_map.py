"""Words on coloured ground: the stronger the score, the deeper the colour."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from faithbench.core.text import without_controls
from faithbench.core.types import Encoding, Floats
from faithbench.data.words import word_spans


def heat_map(encoding: Encoding, scores: Floats) -> Text:
    """Colour a text by its tokens' scores: orange speaks for the prediction, blue against.

    The darker, the stronger, relative to the strongest token of the text. The two hues stay
    apart for readers who do not tell red from green. The second text of a pair follows on a
    line of its own.
    """
    whole, spans = shaded_spans(encoding, scores)
    # A terminal would obey control characters, and Text would drop some and shift the rest.
    text = Text(without_controls(whole, keep="\t\n"))
    for start, end, strength in spans:
        text.stylize(_shade(strength), start, end)
    return text


def shaded_spans(encoding: Encoding, scores: Floats) -> tuple[str, list[tuple[int, int, float]]]:
    """Return the text, and where its tokens are with their scores, the strongest as 1 or -1.

    The second text of a pair follows on a line of its own.
    """
    example = encoding.example
    both = [part for part in (example.text, example.text_b) if part is not None]
    strongest = float(abs(scores).max()) or 1.0
    words_before = len(word_spans(example.text))
    spans = []
    for token, score in zip(np.flatnonzero(encoding.erasable), scores, strict=True):
        start, end = encoding.spans[token]
        shift = len(example.text) + 1 if encoding.words[token] >= words_before else 0
        spans.append((int(start) + shift, int(end) + shift, float(score) / strongest))
    return "\n".join(both), spans


def _shade(strength: float) -> str:
    """Blend white into orange (positive) or blue (negative), with black text on top."""
    if abs(strength) < 0.05:
        return ""
    full = (230, 120, 20) if strength > 0 else (60, 130, 220)
    share = min(1.0, abs(strength))
    red, green, blue = (round(255 - share * (255 - c)) for c in full)
    return f"black on #{red:02x}{green:02x}{blue:02x}"

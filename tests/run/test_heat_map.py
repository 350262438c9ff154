"""Heat maps keep the text, and colour it by strength."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from faithbench.core.types import Encoding, Example
from faithbench.models.encoding import encode
from faithbench.run.heat_map import heat_map, words_heat_map

ORANGE, BLUE = (230, 120, 20), (60, 130, 220)


def background(text: Text, word: str) -> tuple[int, int, int] | None:
    style = text.get_style_at_offset(Console(), text.plain.index(word))
    if style.bgcolor is None:
        return None
    triplet = style.bgcolor.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def encoded(tiny_model: Any, text: str, text_b: str | None = None, **options: Any) -> Encoding:
    return encode(tiny_model(), Example("e", text, 0, text_b), **options)


def test_heat_map_keeps_the_text_and_colours_by_strength(tiny_model: Any) -> None:
    written = "  The film,  is not  GREATLY dull . "
    encoding = encoded(tiny_model, written)
    # the film , is not great ##ly dull .
    scores = np.array([0.02, 0.5, 0.0, -0.2, -1.0, 2.0, 1.0, -2.0, 0.3])
    text = heat_map(encoding, scores)
    assert text.plain == written
    assert background(text, "GREAT") == ORANGE and background(text, "dull") == BLUE
    # Half the strength is half way to white: 255 - (255 - c) / 2, rounded.
    assert background(text, "LY") == (242, 188, 138)
    assert background(text, "not") == (158, 192, 238)
    assert background(text, "The") is None and background(text, ",") is None
    assert background(text, "  GREATLY") is None
    strongest = min(
        (sum(shade), word)
        for word in ("film", "is", "not", "GREAT", "LY", ".")
        if (shade := background(text, word)) is not None
    )
    assert strongest[1] == "GREAT"


def test_heat_map_without_any_relevance(tiny_model: Any) -> None:
    text = heat_map(encoded(tiny_model, "good film"), np.zeros(2))
    assert text.plain == "good film" and text.spans == []


def test_heat_map_of_a_pair_shows_both_texts(tiny_model: Any) -> None:
    pair = encoded(tiny_model, "good film", "the plot is dull", evidence="both")
    text = heat_map(pair, np.array([1.0, 0, 0, 0, 0, -1.0]))
    assert text.plain == "good film\nthe plot is dull"
    assert background(text, "good") == ORANGE and background(text, "dull") == BLUE
    assert background(text, "plot") is None
    second = encoded(tiny_model, "good film", "the plot is dull", evidence="text_b")
    text = heat_map(second, np.array([0.0, 1.0, 0, 0]))
    assert text.plain == "good film\nthe plot is dull"
    assert background(text, "plot") == ORANGE and background(text, "good") is None


def by_hand(written: str, spans: list[tuple[int, int]]) -> Encoding:
    count = len(spans)
    whole = np.arange(count)
    return Encoding(
        Example("e", written, 0), whole, whole * 0, whole >= 0, whole * 0, tuple(spans), (), 0
    )


def test_heat_map_of_tokens_that_share_a_character() -> None:
    # Byte-level tokenizers cut one emoji into several tokens with the same span.
    text = heat_map(by_hand("a 🎬 b", [(0, 1), (1, 3), (2, 3), (3, 5)]), np.array([0, 0, 1.0, 0]))
    assert text.plain == "a 🎬 b" and background(text, "🎬") == ORANGE


def test_heat_map_is_no_place_for_control_characters() -> None:
    text = heat_map(by_hand("a\x1b[2J\rb", [(0, 1), (6, 7)]), np.array([0.0, 1.0]))
    assert text.plain == "a [2J b" and background(text, "b") == ORANGE


def test_punctuation_stands_at_its_word() -> None:
    pieces = ["ol", "(", "network", ")", "-", "5", "%", ",", "it", "'", "s", "$", "9", "."]
    text = words_heat_map([(piece, 0.0) for piece in pieces])
    assert text.plain == "ol (network) - 5%, it ' s $9."

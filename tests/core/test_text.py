"""Text of unknown origin, made safe to show."""

from __future__ import annotations

import pytest

from faithbench.core.text import plain, readable, without_controls, wrap_name

ESCAPE = "\x1b[31mred\x9b0m"
BIDI = "a\u202eb\u2066c\u2069"


def test_controls_become_spaces_one_for_one() -> None:
    assert without_controls(ESCAPE) == " [31mred 0m"
    assert without_controls(BIDI) == "a b c "
    assert without_controls("a\tb\nc\u2028d") == "a b c d"
    assert without_controls("caf\u00e9 \U0001f600 \ue000") == "caf\u00e9 \U0001f600 \ue000"


def test_line_breaks_can_be_kept() -> None:
    assert without_controls("a\tb\nc\x00", keep="\t\n") == "a\tb\nc "


def test_plain_text_is_one_line_without_what_cannot_be_shown() -> None:
    assert plain(f"  {ESCAPE}\n\n {BIDI}") == "[31mred 0m a b c"
    assert plain("x\ue000y\ud800z") == "x y z"


@pytest.mark.parametrize(
    ("text", "most", "line"),
    [
        ("a\n\x1b b", 200, "a b"),
        ("\u200bzero width\u00a0", 200, "zero width"),
        ("x" * 10, 10, "x" * 10),
        ("x" * 11, 10, "xxxxxxx..."),
    ],
)
def test_untrusted_text_is_cut_to_one_short_line(text: str, most: int, line: str) -> None:
    assert readable(text, most) == line


def test_long_names_break_after_their_marks() -> None:
    assert wrap_name("lrp-mask:thresholds=paper,released=true", 14) == (
        "lrp-mask:\nthresholds=\npaper,\nreleased=true"
    )
    assert wrap_name("deep-shap", 14) == "deep-shap"
    assert wrap_name("attention-x-gradient", 14) == "attention-x-\ngradient"

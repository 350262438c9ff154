"""Numbers and names as pages say them."""

from __future__ import annotations

import pytest

from faithbench.core.text import plain
from faithbench.leaderboard.pages.formatting import cost, markdown, number


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5333, ".533"), (-1.6149, "-1.615"), (-0.25, "-.250"), (0, ".000"), (-0.0001, ".000"),
     (12.0, "12.000"), (None, "-")],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_costs() -> None:
    assert cost("seconds", 0.01234) == "0.012" and cost("bytes", 65_400_000) == "65 MB"
    assert cost("rows", 46.8333) == "46.83" and cost("rows", 123456.7) == "123457"
    assert cost("seconds", None) == "-"


def test_markdown_is_escaped() -> None:
    assert markdown("a|b") == "a\\|b" and markdown("`x`") == "\\`x\\`"
    assert markdown("<b>&") == "&lt;b&gt;&amp;" and markdown("[a](b)") == "\\[a\\]\\(b\\)"
    assert markdown("x_y*z") == "x\\_y\\*z" and markdown("$1$") == "&#36;1&#36;"
    assert markdown("http://a www.b c@d") == "http&#58;//a www&#46;b c&#64;d"
    assert markdown("lime:samples=50") == "lime:samples=50"


def test_text_is_one_line_of_visible_characters() -> None:
    assert plain(" a\r\n\tb\x1b[1m\u202ec\u2028d\ue000e ") == "a b [1m c d e"

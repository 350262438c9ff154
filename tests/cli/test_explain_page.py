"""The page of one text: every token in its shade, every word with its score, all text escaped."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import numpy as np

from faithbench.cli.explain_page import render_explanations
from faithbench.core.types import Attribution, Example
from faithbench.models.encoding import encode
from faithbench.run.one_text import Explanation, word_scores
from tests.support.builders import make_task


def explanation(model: Any, example: Example, scores: list[float]) -> Explanation:
    encoding = encode(model, example, "both" if example.text_b else "text")
    every = np.zeros(len(encoding.ids))
    every[encoding.erasable] = scores
    attribution = Attribution(encoding, 0, every, seconds=0.0, forwards=1, backwards=0)
    return Explanation("no", 0.75, attribution, word_scores(encoding, attribution.scores))


def shades(page: str) -> list[tuple[str, str]]:
    words = page.split('<p class="words">')[1].split("</p>", maxsplit=1)[0]
    spans = re.findall(r'<span class="token ?([^"]*)" title="[^"]*">(.*?)</span>', words)
    return [(style, unescape(text)) for style, text in spans]


def test_tokens_are_shaded_relative_to_the_strongest(tiny_model: Any) -> None:
    explained = explanation(
        tiny_model(), Example("e", "the films good dull", 0), [1, 0.1, -2, 0, 4]
    )
    page = render_explanations(make_task(), "m", [("attention", explained)])
    # film ##s: two tokens of one word, side by side.
    assert shades(page) == [
        ("up s2", "the"), ("", "film"), ("down s5", "s"), ("", "good"), ("up s10", "dull")
    ]  # fmt: skip
    assert '<tr><th scope="row"><bdi>films</bdi></th><td>-1.9</td></tr>' in page
    assert "with probability 0.750" in page and ">film</span><span" in page


def test_all_text_is_escaped(tiny_model: Any) -> None:
    text = 'good </p><script>alert(1)</script> & "dull"'
    encoding = encode(tiny_model(), Example("e", text, 0))
    scores = [1.0] * int(encoding.erasable.sum())
    explained = explanation(tiny_model(), Example("e", text, 0), scores)
    page = render_explanations(make_task(), "<i>m</i>", [("<u>mine</u>", explained)])
    assert "<script" not in page and "<i>" not in page and "<u>" not in page
    words = page.split('<p class="words">')[1].split("</p>")[0]
    assert unescape(re.sub(r"<[^>]*>", "", words)) == text


def test_a_pair_is_on_two_lines(tiny_model: Any) -> None:
    explained = explanation(tiny_model(), Example("e", "good film", 0, "the plot"), [1, 2, 3, 4])
    page = render_explanations(make_task(), "m", [("a", explained), ("b", explained)])
    assert page.count("<br>") == 2 and page.count('class="card"') == 2
    assert shades(page)[2:4] == [("up s8", "the"), ("up s10", "plot")]

"""One closed HTML file: its data cannot become markup, and its policy allows nothing else."""

from __future__ import annotations

import json
import re

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.html.document import asset, document, embedded
from tests.support.hostile_board import HOSTILE, without_turning_marks


def test_embedded_json_is_plain_ascii_and_reads_back() -> None:
    text = embedded(HOSTILE)
    assert re.fullmatch(r"[ -~]+", text) and not set("<>&") & set(text)
    assert tuple(json.loads(text)) == without_turning_marks(HOSTILE)
    kept = ["\\u202e", "\\\\u2028", "\\", "é\U0001f600"]
    assert json.loads(embedded(kept)) == kept
    assert json.loads(embedded("a\\\u202eb\u2028")) == "a\\ b "
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded(float("nan"))


def test_a_script_that_would_end_its_element_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="holds an end tag"):
        document(title="", style="", body="", data={}, scripts=("'</ScRiPt>'",))


def test_page_without_scripts_allows_none() -> None:
    text = document(title="a < b", style="p {}", body="<p>", data={}, scripts=())
    assert "script-src 'none'" in text and "<title>a &lt; b</title>" in text


def test_all_parts_of_a_page_are_filled_in() -> None:
    text = document(
        title="t", style="p {}", body="<p>hello</p>", data={"a<b": [1, "<"]}, scripts=("run()",)
    )
    assert '<script type="application/json" id="a&lt;b">[1,"\\u003c"]</script>' in text
    assert '<script type="module">run()</script>' in text and "<p>hello</p>" in text
    assert "$" not in text and "$title" in asset("document.html")

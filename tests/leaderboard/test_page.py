"""The page as text: whole, the same every time, and closed to what comes in with the data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faithbench.errors import FaithbenchError
from faithbench.leaderboard import page
from faithbench.leaderboard.document import document, embedded
from tests.leaderboard.boards import small_board
from tests.leaderboard.hostile import HOSTILE, hostile_board

LIBRARY = "window.vegaEmbed = null;"


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the chart library out, which takes seconds."""
    monkeypatch.setattr(page, "chart_library", lambda: LIBRARY)


def blocks(text: str) -> dict[str, object]:
    found = re.findall(r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, re.S)
    return {name: json.loads(value) for name, value in found}


def plain(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts without marks that turn their direction."""
    return tuple(re.sub("[\u2028\u2029\u202e]", " ", text) for text in texts)


def test_the_same_board_gives_the_same_page() -> None:
    assert page.render_page(small_board()) == page.render_page(small_board())


def test_page_holds_its_data_in_a_block_per_table() -> None:
    found = blocks(page.render_page(small_board()))
    assert list(found) == ["board", "table-0", "table-1", "table-2"]
    assert [table["id"] for table in found["board"]["tables"]] == ["sst2", "agnews", "semeval"]
    assert found["table-2"]["facts"]["id"] == "semeval"


def test_page_is_made_without_torch() -> None:
    code = (
        "import sys; from faithbench.leaderboard import page; "
        "from tests.leaderboard.boards import small_board; page.chart_library = str; "
        "page.render_page(small_board()); print('torch' in sys.modules)"
    )
    checkout = Path(__file__).parents[2]
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"


def test_page_asks_nothing_of_the_network() -> None:
    text = page.render_page(small_board())
    assert re.findall(r"(?:src|href)=\"(?!#)|url\(|@import|https?://", text) == []
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "connect" not in policy


def test_policy_names_exactly_what_is_inside() -> None:
    text = page.render_page(small_board())
    scripts = re.findall(r'<script type="module">(.*?)</script>', text, re.S)
    styles = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(scripts) == 2 and len(styles) == 1 and scripts[1] == LIBRARY
    digests = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in (*styles, *scripts)
    ]
    assert re.findall(r"sha256-([^']+)'", text.split("</head>")[0]) == digests


def test_text_of_the_data_never_becomes_markup() -> None:
    text = page.render_page(hostile_board())
    assert "<img" not in text and "<svg" not in text and "alert(1)</script>" not in text
    assert text.count("</script>") == 6  # four blocks of data, two scripts
    found = blocks(text)
    labels = [label for label, _ in found["board"]["explainers"]]
    assert sorted(labels) == sorted(plain(HOSTILE[:7]))
    assert tuple(found["table-0"]["shown"][0]["tokens"][:8]) == plain(HOSTILE)


def test_embedded_json_is_plain_ascii_and_reads_back() -> None:
    text = embedded(HOSTILE)
    assert re.fullmatch(r"[ -~]+", text) and not set("<>&") & set(text)
    assert tuple(json.loads(text)) == plain(HOSTILE)
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

"""The page with its tables in files beside it: loaded when opened, and only as they were made."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from faithbench.leaderboard.html.page import render_page, table_json
from tests.support import browser
from tests.support.boards import small_board
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def folder(tmp_path: Path, pages: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAITHBENCH_HOME", str(pages["small"].parent))  # has the chart library
    board = small_board()
    beside = {f"data/{table.id}.json": table_json(table) for table in board.tables}
    (tmp_path / "data").mkdir()
    for name, text in beside.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "index.html").write_text(render_page(board, beside=beside), encoding="utf-8")
    return tmp_path


@pytest.fixture
def served(chromium: Any, folder: Path) -> Iterator[Reader]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chromium.get_log("browser")
    browser.requests(chromium)
    yield Reader(chromium, f"http://127.0.0.1:{server.server_port}/index.html")
    server.shutdown()
    server.server_close()


def asked(reader: Reader) -> list[str]:
    """Return the files that were asked for since the last call."""
    return [url.partition("#")[0].rsplit(":", 1)[1].partition("/")[2]
            for url in browser.requests(reader.driver)]  # fmt: skip


def test_tables_load_when_they_are_opened_and_once(served: Reader) -> None:
    served.open("ranking")
    assert asked(served) == ["index.html"]
    served.one("#sections a[href='#results']").click()
    served.wait("document.querySelector('#results-table') !== null")
    assert asked(served) == ["data/agnews.json"]
    assert len(served.explainers("#results-table")) == 6
    served.choose("#table", "semeval · n = 200")
    served.wait("document.querySelector('#results-facts dd')?.textContent.includes('semeval')")
    served.choose("#table", "agnews · n = 200")
    served.one("#sections a[href='#guide']").click()
    assert len(served.all("#guide-metrics dt")) == 25
    assert asked(served) == ["data/semeval.json"]
    served.go("results/semeval/lrp-mask")
    assert served.one(".linked").get_attribute("data-explainer") == "lrp-mask"
    assert [entry["message"] for entry in served.driver.get_log("browser")] == []


def test_a_file_of_another_digest_is_refused_and_can_be_tried_again(
    served: Reader, folder: Path
) -> None:
    file = folder / "data" / "agnews.json"
    kept = file.read_bytes()
    file.write_bytes(kept.replace(b"lrp-mask", b"lrp-mark"))
    served.open("results", "agnews")
    served.wait("document.querySelector('#waiting .note') !== null")
    assert "is not the one that this page was made with" in served.one("#waiting").text
    assert not served.one("#section-results").is_displayed()
    file.unlink()
    asked(served)
    served.one("#waiting button").click()
    served.wait("document.querySelector('#waiting .note') !== null")
    assert asked(served) == ["data/agnews.json"]
    served.one("#sections a[href='#ranking']").click()
    assert served.one("#section-ranking").is_displayed()
    assert not served.one("#waiting").is_displayed()
    file.write_bytes(kept)
    served.one("#sections a[href='#results']").click()
    served.wait("document.querySelector('#results-table') !== null")
    assert "lrp-mask" in served.explainers("#results-table")


def test_opened_from_a_disk_it_says_what_to_do(chromium: Any, folder: Path) -> None:
    shutil.rmtree(folder / "data")  # never read
    reader = Reader(chromium, folder / "index.html")
    reader.open("ranking")
    assert reader.one("#ranking-table").is_displayed()
    reader.open("results", "agnews")
    reader.wait("document.querySelector('#waiting .note') !== null")
    told = reader.one("#waiting").text
    assert "python -m http.server" in told and "leaderboard build --tables inside" in told
    chromium.get_log("browser")

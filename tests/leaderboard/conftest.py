"""Pages of small boards, and a browser that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faithbench.leaderboard.html.page import render_page
from tests.support import browser
from tests.support.boards import (
    empty_board,
    full_board,
    question_board,
    real_board,
    small_board,
)
from tests.support.hostile_board import hostile_board
from tests.support.reader import Reader


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAITHBENCH_HOME", str(folder))
        boards = {
            "small": small_board(),
            "hostile": hostile_board(),
            "empty": empty_board(),
            "question": question_board(),
            "real": real_board(),
            "full": full_board(),
        }
        for name, board in boards.items():
            (folder / f"{name}.html").write_text(render_page(board), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in boards}


@pytest.fixture(scope="module")  # what one file's tests leave in a browser is not another's
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = browser.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture
def small(chromium: Any, pages: dict[str, Path]) -> Iterator[Reader]:
    yield from _quiet_reader(chromium, pages["small"])


@pytest.fixture
def real(chromium: Any, pages: dict[str, Path]) -> Iterator[Reader]:
    yield from _quiet_reader(chromium, pages["real"])


@pytest.fixture
def full(chromium: Any, pages: dict[str, Path]) -> Iterator[Reader]:
    yield from _quiet_reader(chromium, pages["full"])


def _quiet_reader(chromium: Any, page: Path) -> Iterator[Reader]:
    """Give a reader on a first visit; the page may neither complain nor ask for anything."""
    browser.forget(chromium)
    chromium.get_log("browser")
    browser.requests(chromium)
    browser.resize(chromium, 1360)
    yield Reader(chromium, page)
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    assert browser.requests(chromium) == []

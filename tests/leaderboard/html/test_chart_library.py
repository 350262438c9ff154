"""The chart library: made once, kept for its version, and named when it is missing."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.html import chart_library
from faithbench.leaderboard.html.chart_library import make_library


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_library_brings_the_interpreter_and_its_licence() -> None:
    text = make_library()
    assert text.startswith("/*! Vega, ") and "BSD 3-Clause" in text
    assert "expressionInterpreter" in text and "charts-ready" in text
    assert "</script" not in text.lower() and "<!--" not in text


def test_library_is_made_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(chart_library, "make_library", lambda: made.append(1) or "new")
    assert [chart_library.chart_library() for _ in range(2)] == ["new", "new"]
    assert made == [1]
    (kept,) = home.iterdir()
    assert kept.name.startswith(f"charts-{version('vl-convert-python')}-")


def test_another_last_line_is_another_library(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_library, "make_library", lambda: "new")
    chart_library.chart_library()
    monkeypatch.setattr(chart_library, "_READY", "window.other = vegaEmbed;")
    monkeypatch.setattr(chart_library, "make_library", lambda: "other")
    assert chart_library.chart_library() == "other" and len(list(home.iterdir())) == 2


def test_library_needs_no_place_to_be_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home.write_text("a file, not a folder")
    monkeypatch.setattr(chart_library, "make_library", lambda: "new")
    assert chart_library.chart_library() == "new"


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(FaithbenchError, match=r"pip install 'faithbench\[page\]'$"):
        chart_library.chart_library()

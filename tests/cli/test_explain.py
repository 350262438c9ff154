"""`faithbench explain`: words and scores in the terminal, and as a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.commands import Call, complaint


def test_explain_shows_label_text_and_words(call: Call) -> None:
    text = "A dull,  tiresome film."
    said = call("explain", "--text", text, "--explainer", "lrp-mask,random")
    assert said.code == 0 and "\x1b" not in said.out + said.err
    lines = said.out.splitlines()
    assert re.fullmatch(r"lrp-mask: negative \(p = 0\.9\d\d\)", lines[0])
    assert lines[1] == text
    assert len([line for line in lines if line.startswith("random: negative")]) == 1
    rows = [line.split("│")[1:3] for line in lines if line.startswith("│")]
    words, scores = zip(*((word.strip(), float(score)) for word, score in rows), strict=True)
    assert sorted(words[:6]) == sorted(words[6:]) == [",", ".", "A", "dull", "film", "tiresome"]
    assert words[0] in ("dull", "tiresome")
    assert list(scores[:6]) == sorted(scores[:6], key=abs, reverse=True)


def test_explain_writes_a_page(call: Call, tmp_path: Path) -> None:
    words = ("explain", "--text", "A <b>dull</b> film.", "--explainer", "attention,random")
    said = call(*words, "--html", "new/out.html")
    assert said.code == 0 and said.out.endswith("written: new/out.html\n")
    page = (tmp_path / "new" / "out.html").read_text()
    assert "<h3><bdi>attention</bdi></h3>" in page and "<h3><bdi>random</bdi></h3>" in page
    assert "<b>" not in page and "&lt;" in page and "<script" not in page
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.html"]


def test_explain_refuses_a_page_before_it_loads_the_model(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faithbench.models.model.load_model", lambda *_, **__: 1 / 0)
    (tmp_path / "file").write_text("")
    words = ("explain", "--text", "fine", "--html")
    assert complaint(call(*words, "file/out.html")) == (
        "cannot write results to file: File exists; choose another folder with --html"
    )
    assert complaint(call(*words, ".")) == (
        "--html should name a file, and . is a folder; give for example --html explained.html"
    )

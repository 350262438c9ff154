"""A card, as a person sees it in 80 columns."""

from __future__ import annotations

import pytest

from faithbench.cli.reference.card import (
    Card,
    paragraphs_of,
    print_card,
    references,
    settings_of,
    wrapped,
)
from faithbench.core.papers import paper_of

DOC = """Say what it is
    in one line.

    And then
    more.
    """


def test_a_card_is_printed_in_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    summary, *rest = paragraphs_of(DOC)
    paper = paper_of("situ2021learning")
    print_card(
        Card(
            "mine", summary, tuple(rest), settings_of({"on": False, "n": 3, "x": 0.5, "of": ""}),
            (("kind", "long " * 30), ("papers", references([paper]))), (paper,), ("run it",),
        )
    )  # fmt: skip
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[:3] == ["mine: Say what it is in one line.", "", "And then more."]
    assert "setting type default" in lines and "on true or false false" in lines
    assert {"n whole number 3", "x number 0.5", 'of text ""', "run it"} <= set(lines)
    assert "@inproceedings{situ2021learning," in lines and lines[-1] == "}"


def test_broken_lines_are_still_bibtex() -> None:
    paper = paper_of("situ2021learning")
    text = wrapped(paper.bibtex)
    assert max(map(len, text.splitlines())) <= 80 < max(map(len, paper.bibtex.splitlines()))
    assert " ".join(text.split()) == " ".join(paper.bibtex.split())


def test_no_docstring_and_no_papers() -> None:
    assert paragraphs_of(None) == () and references([]) == "none to cite"

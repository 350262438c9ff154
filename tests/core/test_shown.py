"""Objects that show themselves: the same words in a shell and on a console."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest
from rich.console import Console
from rich.text import Text

from faithbench.core.shown import Shown


@dataclass(frozen=True, repr=False)
class Coloured(Shown):
    word: str = "warm"

    def __rich__(self) -> Text:
        return Text(self.word, style="red")

    def _repr_html_(self) -> str:
        return f"<b>{self.word}</b>"


def test_a_shell_shows_the_text_without_colour_codes_where_there_is_no_terminal() -> None:
    assert repr(Coloured()) == "warm"
    assert str(Coloured("cold")) == "cold"


def test_a_console_shows_it_in_colour() -> None:
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard").print(Coloured())
    assert out.getvalue() == "\x1b[31mwarm\x1b[0m\n"


def test_what_shows_nothing_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Shown()._repr_html_()
    with pytest.raises(NotImplementedError):
        Shown().__rich__()

"""Text that shows what it is: no character without a look, and names that read as they run."""

from __future__ import annotations

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.visible import invisible_in, refuse_hidden, refuse_hidden_code


@pytest.mark.parametrize(
    "hidden",
    ["\x00", "\x1b", "\x85", "\xad", "\u034f", "\u115f", "\u200b", "\u200f", "\u2028", "\u202e",
     "\u2060", "\u2066", "\u2800", "\u3164", "\ue000", "\ufe0f", "\ufeff", "\uffa0", "\U000e0041",
     "\U000e0100"],
)  # fmt: skip
def test_what_cannot_be_seen_is_found(hidden: str) -> None:
    assert invisible_in(f"ab{hidden}c") == hidden
    with pytest.raises(FaithbenchError) as caught:
        refuse_hidden("README.md", f"one\ntwo {hidden}\n".encode())
    assert str(caught.value) == (
        f"README.md, line 2 has the control or invisible character U+{ord(hidden):04X}; remove it"
    )


def test_what_can_be_seen_is_taken() -> None:
    text = "Zoë Ünal,\t\u043d\u0430\u0443\u043a\u0430 \u79d1\u5b66 \u2211 \U0001f642\r\n"
    assert refuse_hidden("README.md", text.encode()) == text
    refuse_hidden_code("explainer.py", f'def f(x):\r\n\treturn "{text[:4]}"  # {text}'.encode())


def test_another_encoding_is_refused_with_its_line() -> None:
    with pytest.raises(FaithbenchError, match=r"^LICENSE, line 2 is not UTF-8; save"):
        refuse_hidden("LICENSE", b"one\ntwo \xe9\n")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\nif admin: # \u202e begin\n    y = 2\n", r"line 2 has .* character U\+202E"),
        ("x = 1\n\u3164 = 2\n", r"line 2 has .* character U\+3164"),
        ("import os\n\n\U0001d4f8\U0001d4fc.system('id')\n",
         r"line 3 has the name \\U0001d4f8\\U0001d4fc, which is not plain ASCII; rename it"),
        ("a = 1\n\u0430 = 2\n", r"line 2 has the name \\u0430"),
        ("# -*- coding: utf-7 -*-\nx = 1\n", "names the encoding utf-7; remove that"),
        ("# coding: raw_unicode_escape\n#\\u000aimport os\n", "names the encoding raw_unicode"),
        ("\ufeffx = 1\n", r"line 1 has .* character U\+FEFF"),
        ("# coding: nothing\n", "is not Python: unknown encoding"),
        ("x = 1\ny = (\n", "line 3 is not Python: EOF in multi-line statement"),
        ("if x:\n        y = 1\n    z = 2\n", "line 3 is not Python: unindent"),
    ],
)  # fmt: skip
def test_code_that_reads_other_than_it_runs_is_refused(code: str, message: str) -> None:
    with pytest.raises(FaithbenchError, match=f"^explainer.py.*{message}") as caught:
        refuse_hidden_code("explainer.py", code.encode())
    assert "\n" not in str(caught.value) and str(caught.value).isascii()

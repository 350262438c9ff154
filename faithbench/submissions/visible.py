"""Text of a submission that shows what it is: nothing in it is invisible or turns what follows."""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata

from faithbench.core.errors import FaithbenchError

# Unicode categories of control and format characters (which turn the direction of text),
# surrogates, private use, unassigned, and separators of lines and paragraphs.
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Letters and marks of no look of their own: Unicode's Default_Ignorable_Code_Point outside those
# categories, and the empty pattern of Braille. Hangul fillers are even names of Python.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def invisible_in(text: str) -> str:
    """Return the first character that a reader cannot see, or nothing."""
    for character in text:
        if unicodedata.category(character) in _INVISIBLE or _BLANK.match(character):
            return character
    return ""


def refuse_hidden(where: str, data: bytes) -> str:
    """Return the text of a file of lines; raise at what a reader of it would not see."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise FaithbenchError(
            f"{where}, line {number} is not UTF-8; save the file as that"
        ) from None
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if hidden := invisible_in(line.replace("\t", " ")):
            raise FaithbenchError(
                f"{where}, line {number} has the control or invisible character "
                f"U+{ord(hidden):04X}; remove it"
            )
    return text


def refuse_hidden_code(where: str, data: bytes) -> None:
    """Raise unless a file of Python reads as it runs: UTF-8, nothing invisible, plain names.

    Python takes a full-width or mathematical letter in a name for the plain one, and a Cyrillic
    one that looks like it for another.
    """
    refuse_hidden(where, data)
    try:
        # In another encoding, the program is not the text that a reader sees.
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        if encoding != "utf-8":
            raise FaithbenchError(f"{where} names the encoding {encoding}; remove that, for UTF-8")
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                name = ascii(token.string)[1:-1][:80]
                raise FaithbenchError(
                    f"{where}, line {token.start[0]} has the name {name}, which is not plain "
                    "ASCII; rename it"
                )
    except tokenize.TokenError as error:
        line = error.args[1][0]
        raise FaithbenchError(f"{where}, line {line} is not Python: {error.args[0]}") from None
    except SyntaxError as error:  # of the named encoding, or of indentation
        place = f", line {error.lineno}" if error.lineno else ""
        raise FaithbenchError(f"{where}{place} is not Python: {error.msg}") from None

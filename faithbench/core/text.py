"""Text of unknown origin made safe to show in a terminal, a page or an error message."""

from __future__ import annotations

import re

# Terminals obey C0 and C1 control characters; pages and editors break lines at U+2028 and U+2029
# and let the bidirectional marks reorder what follows them.
_CONTROLS = "\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
# Private-use characters and lone surrogates have no agreed look, and the latter cannot be encoded.
_UNSHOWABLE = re.compile(f"[{_CONTROLS}\ue000-\uf8ff\ud800-\udfff]")
_CONTROL = re.compile(f"[{_CONTROLS}]")


def without_controls(text: str, *, keep: str = "") -> str:
    """Replace each control character and each mark of text direction by a space.

    One for one, so that character offsets stay valid; the characters of `keep` stay.
    """
    return _CONTROL.sub(lambda match: match[0] if match[0] in keep else " ", text)


def plain(text: str) -> str:
    """Put text on one line, without characters that a terminal or page would obey."""
    return re.sub(r"\s+", " ", _UNSHOWABLE.sub(" ", text)).strip()


def readable(text: str, most: int = 200) -> str:
    """Put untrusted text on one line of printable characters, at most `most` of them."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def wrap_name(name: str, width: int) -> str:
    """Break a long name of an explainer after its marks, so that words stay whole."""
    lines = [""]
    for part in re.findall(r"[^:,=-]*[:,=-]?", name):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)

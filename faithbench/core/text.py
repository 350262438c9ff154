"""Foreign text made safe to print: one line, no control characters."""

from __future__ import annotations

import re


def plain(text: str) -> str:
    """Put text on one line, without characters that a terminal or page would obey."""
    odd = "[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ue000-\uf8ff\ud800-\udfff]"
    return re.sub(r"\s+", " ", re.sub(odd, " ", text)).strip()


def readable(text: str, most: int = 200) -> str:
    """Make one line of a stranger's text: printable, and not too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= most else line[: most - 3] + "..."

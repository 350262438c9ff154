"""One HTML file with all it needs inside, and a policy that forbids it everything else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template

from faithbench.core.errors import FaithbenchError

# An escaped backslash is matched first, as a pair: `\\u202e` in JSON is a backslash followed by
# letters, not a mark that turns the direction of text.
_TURNING_MARKS = re.compile(r"(\\\\)|\\u(?:202[89a-e]|206[6-9])")


def asset(name: str) -> str:
    """Return the text of a file that is shipped with the package for pages."""
    return (files("faithbench.leaderboard.html") / "assets" / name).read_text(encoding="utf-8")


def document(
    *,
    title: str,
    style: str,
    body: str,
    data: Mapping[str, object],
    scripts: Sequence[str],
    fetches: bool = False,
) -> str:
    """Put a page together; `body` is HTML already, `data` is read by the scripts as JSON.

    The policy allows this very style and these very scripts, by their digests, and no request to
    anywhere: text that came in with the data cannot run, even if it were to become HTML. A page
    that `fetches` data may ask the server that it came from, and nobody else.
    """
    allowed_scripts = " ".join(map(_source_of, scripts)) or "'none'"
    asked = "connect-src 'self'; " if fetches else ""
    policy = (
        f"default-src 'none'; style-src {_source_of(style)}; script-src {allowed_scripts}; "
        f"{asked}img-src data:; base-uri 'none'; form-action 'none'"
    )
    blocks = [
        f'<script type="application/json" id="{html.escape(name)}">{embedded(value)}</script>'
        for name, value in data.items()
    ]
    blocks += [f'<script type="module">{_checked(script)}</script>' for script in scripts]
    return Template(asset("document.html")).substitute(
        policy=policy,
        title=html.escape(title),
        style=_checked(style),
        body=body,
        blocks="\n".join(blocks),
    )


def embedded(value: object) -> str:
    """Return JSON in plain ASCII that cannot end the script element it stands in.

    Marks that turn the direction of text, or end a paragraph, become spaces: shown, they would
    shuffle the words around them.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # A plain search first: most texts have no such mark, and it is faster than the pattern.
    return _TURNING_MARKS.sub(lambda match: match[1] or " ", text) if r"\u20" in text else text


def digest_source(text: str) -> str:
    """Return the digest by which a browser knows exactly this text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _source_of(text: str) -> str:
    """Return the source expression by which a policy allows exactly this script or style."""
    return f"'{digest_source(text)}'"


def _checked(text: str) -> str:
    """Return a script or style, refusing one that would end its own element."""
    lowered = text.lower()
    if "</script" in lowered or "</style" in lowered or "<!--" in lowered:
        raise FaithbenchError(
            "a script or style of the page holds an end tag, found '</script', '</style' or "
            "'<!--'; install the version of vl-convert-python that constraints.txt names"
        )
    return text

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

# A backslash that stands for itself is taken in pairs, so that what follows it is left alone.
_TURNING = re.compile(r"(\\\\)|\\u(?:202[89a-e]|206[6-9])")


def asset(name: str) -> str:
    """Return a file of the page, as it is shipped with the package."""
    return (files("faithbench.leaderboard.html") / "assets" / name).read_text(encoding="utf-8")


def document(
    *, title: str, style: str, body: str, data: Mapping[str, object], scripts: Sequence[str]
) -> str:
    """Put a page together; `body` is HTML already, `data` is read by the scripts as JSON.

    The policy allows this very style and these very scripts, by their digests, and no request to
    anywhere: text that came in with the data cannot run, even if it were to become HTML.
    """
    policy = (
        f"default-src 'none'; style-src {_digest(style)}; "
        f"script-src {' '.join(map(_digest, scripts)) or chr(39) + 'none' + chr(39)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    blocks = [
        f'<script type="application/json" id="{html.escape(name)}">{embedded(value)}</script>'
        for name, value in data.items()
    ]
    blocks += [f'<script type="module">{_closed(script)}</script>' for script in scripts]
    return Template(asset("document.html")).substitute(
        policy=policy,
        title=html.escape(title),
        style=_closed(style),
        body=body,
        blocks="\n".join(blocks),
    )


def embedded(value: object) -> str:
    """Return JSON in plain ASCII that cannot end the script element it stands in.

    Marks that turn the direction of text, or end a paragraph, become spaces: shown, they would
    shuffle the words beside them.
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Looked for first, since most texts have none.
    return _TURNING.sub(lambda found: found[1] or " ", text) if r"\u20" in text else text


def _digest(text: str) -> str:
    found = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{found}'"


def _closed(text: str) -> str:
    """Return a script or style, refusing one that would end its own element."""
    lowered = text.lower()
    if "</script" in lowered or "</style" in lowered or "<!--" in lowered:
        raise FaithbenchError(
            "a script or style of the page holds an end tag, found '</script', '</style' or "
            "'<!--'; install the version of vl-convert-python that constraints.txt names"
        )
    return text

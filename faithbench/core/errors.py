"""The one error a person is meant to read."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class FaithbenchError(Exception):
    """Something the user can mend: the message says what was asked, found, and what to do."""


def unknown(kind: str, name: str, known: Iterable[str]) -> FaithbenchError:
    """Build the error for a name that is not in the catalogue, with the nearest one offered."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
    return FaithbenchError(f"no {kind} named {name!r}; {hint}")

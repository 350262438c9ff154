"""The grammar `name:key=value`, in which explainers and their settings are written."""

from __future__ import annotations

from faithbench.core.errors import FaithbenchError


def parse_explainers(text: str, noun: str = "explainer") -> list[tuple[str, dict[str, str]]]:
    """Split the list; a part with `=` and no name belongs to the name before it."""
    # A comma separates explainers and settings alike: `lime:samples=5,seed=2,gae` are two of them.
    entries: list[tuple[str, dict[str, str]]] = []
    for word in text.split(","):
        name, setting = _split(word.strip())
        if name:
            entries.append((name, {}))
        if setting:
            key, equals, value = setting.partition("=")
            if not entries:
                raise FaithbenchError(f"setting {setting!r} has no {noun}; write name:{setting}")
            if not equals:
                raise FaithbenchError(
                    f"setting {setting!r} of {entries[-1][0]!r} has no value; write {key}=value"
                )
            entries[-1][1][key.strip()] = value.strip()
    return entries


def _split(word: str) -> tuple[str, str]:
    """Split `name:key=value`; `captum:Class` is a name with a colon of its own.

    So may a value have one: in `l2e:teacher=lime:samples=64` the teacher is `lime:samples=64`.
    """
    before, equals, after = word.partition("=")
    name, colon, key = before.rpartition(":")
    if not colon:
        return ("", word) if equals else (word, "")
    if name.strip() == "captum" and not equals:
        return f"captum:{key.strip()}", ""
    return name.strip(), f"{key}{equals}{after}"


def setting_text(value: object) -> str:
    """Write a setting as a user would type it: true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)

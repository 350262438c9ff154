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
    """Split `name:key=value`; `captum:Class` is a name with a colon of its own."""
    if ":" not in word:
        return ("", word) if "=" in word else (word, "")
    name, _, setting = word.rpartition(":")
    if name.strip() == "captum" and "=" not in setting:
        return f"captum:{setting.strip()}", ""
    return name.strip(), setting


def setting_text(value: object) -> str:
    """Write a setting as a user would type it: true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Names of explainers and their settings, listed without loading torch."""

from __future__ import annotations

import importlib
from dataclasses import asdict, dataclass, fields
from typing import Any

from faithbench.errors import FaithbenchError, unknown
from faithbench.types import Explainer, Settings


@dataclass(frozen=True)
class Entry:
    """Where an explainer lives, and the line that `faithbench list` shows."""

    family: str
    target: str
    summary: str


_AT = "faithbench.explainers."
EXPLAINERS: dict[str, Entry] = {
    "random": Entry("control", _AT + "controls:Random", "Score each token with a random number."),
    "attention": Entry(
        "attention", _AT + "attention:Attention", "Read the last block's attention, heads averaged."
    ),
    "rollout": Entry(
        "attention", _AT + "attention:Rollout", "Multiply attention through all blocks."
    ),
    "input-x-gradient": Entry(
        "gradient", _AT + "gradient:InputXGradient", "Multiply each embedding by its gradient."
    ),
    "lrp-mask": Entry(
        "relevance", _AT + "relevance:LrpMask", "Propagate relevance through important heads only."
    ),
}


@dataclass(frozen=True)
class Chosen:
    """An explainer as the user asked for it: its name and the settings that differ."""

    name: str
    explainer: Explainer

    @property
    def settings(self) -> Settings:
        """Every setting with its value."""
        return asdict(self.explainer)  # type: ignore[call-overload, no-any-return]

    @property
    def label(self) -> str:
        """The name, with the settings that are not the default."""
        default = type(self.explainer)()
        changed = [
            f"{f.name}={_text(getattr(self.explainer, f.name))}"
            for f in fields(self.explainer)  # type: ignore[arg-type]
            if getattr(self.explainer, f.name) != getattr(default, f.name)
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


def find_explainers(text: str) -> tuple[Chosen, ...]:
    """Resolve `name[:key=value,...][,name...]` into explainers with settings."""
    chosen: dict[str, Chosen] = {}
    for name, settings in _parse(text):
        if name not in EXPLAINERS:
            raise unknown("explainer", name, EXPLAINERS)
        module, _, attribute = EXPLAINERS[name].target.partition(":")
        kind = getattr(importlib.import_module(module), attribute)
        one = Chosen(name, configure(name, kind, settings))
        chosen[one.label] = one
    return tuple(chosen.values())


def _parse(text: str) -> list[tuple[str, dict[str, str]]]:
    """Split the list; a part with `=` and no name belongs to the explainer before it."""
    found: list[tuple[str, dict[str, str]]] = []
    for part in (p.strip() for p in text.split(",")):
        name, _, setting = part.rpartition(":") if ":" in part else (part, "", "")
        if "=" in part and ":" not in part and found:
            name, setting = "", part
        if name:
            found.append((name, {}))
        if setting:
            key, equals, value = setting.partition("=")
            if not equals:
                raise FaithbenchError(
                    f"setting {setting!r} of {found[-1][0]!r} has no value; write {key}=value"
                )
            found[-1][1][key.strip()] = value.strip()
    return [(name, settings) for name, settings in found]


def configure(name: str, kind: type[Any], settings: dict[str, str]) -> Explainer:
    """Build an explainer from text settings, each read as its default's type."""
    defaults = asdict(kind())
    values: dict[str, bool | int | float | str] = {}
    for key, text in settings.items():
        if key not in defaults:
            raise unknown(f"setting of {name}", key, defaults or ["(it has none)"])
        values[key] = _read(name, key, text, type(defaults[key]))
    explainer: Explainer = kind(**values)
    return explainer


def _read(name: str, key: str, text: str, kind: type[Any]) -> bool | int | float | str:
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise FaithbenchError(f"{name}: {key} is true or false, found {text!r}")
        return text.lower() == "true"
    try:
        value: int | float | str = kind(text)
    except ValueError:
        raise FaithbenchError(f"{name}: {key} is a {kind.__name__}, found {text!r}") from None
    return value


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

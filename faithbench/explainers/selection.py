"""From what the user wrote after `--explainer` to explainers with settings."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.plugins import EXPLAINER_MARK, Plugin
from faithbench.core.spec import parse_explainers, setting_text
from faithbench.core.types import Settings
from faithbench.explainers.protocol import (
    Explainer,
    folder_settings,
    is_replayed,
    needs_rationale,
    revision_of,
)
from faithbench.explainers.registry import EXPLAINERS, installed_plugins, plugins_of_file


@dataclass(frozen=True)
class Selected:
    """An explainer as the user asked for it, and the package it comes from.

    `stated` are the settings of an explainer that ran elsewhere and cannot be called here.
    """

    name: str
    explainer: Explainer
    package: str = "faithbench"
    version: str = ""
    stated: Settings | None = None

    @property
    def settings(self) -> Settings:
        """Every setting with its value."""
        if self.stated is not None:
            return self.stated
        settings: dict[str, Any] = asdict(self.explainer)  # type: ignore[call-overload]  # the protocol cannot say dataclass
        folders = folder_settings(self.explainer)
        return {
            key: Path(value).name if key in folders else value for key, value in settings.items()
        }

    @property
    def revision(self) -> int:
        """The revision of the explainer, by which records of older ones are told."""
        return revision_of(self.explainer)

    @property
    def replayed(self) -> bool:
        """Whether scores are only read back, so that their cost cannot be measured."""
        return is_replayed(self.explainer)

    @property
    def label(self) -> str:
        """The name, with the settings that are not the default, where a default is known."""
        if self.stated is not None:
            return self.name
        default = asdict(type(self.explainer)())  # type: ignore[call-overload]  # likewise
        changed = [
            f"{key}={setting_text(value)}"
            for key, value in self.settings.items()
            if value != default[key]
        ]
        return self.name + (":" + ",".join(changed) if changed else "")


def find_explainers(
    text: str, files: Iterable[Path] = (), *, rationale: bool = True
) -> tuple[Selected, ...]:
    """Resolve `name[:key=value,...][,name...]`; `all-<family>` stands for a family's names.

    Names are built in, of installed plugins, of loose `files`, or `captum:<Class>`. `rationale`
    says whether the data have human ones: without, `all` leaves out explainers that need them.
    """
    plugins = _by_name(files)
    by_label: dict[str, Selected] = {}
    for name, settings in _expand(parse_explainers(text), rationale):
        selected = _choose(name, settings, plugins)
        if needs_rationale(selected.explainer) and not rationale:
            raise FaithbenchError(
                f"explainer {name!r} shows a human rationale, and there is none here; "
                "leave it out, or choose data with human rationales"
            )
        by_label[selected.label] = selected
    if not by_label:
        raise unknown("explainer", text, [*EXPLAINERS, *plugins])
    return tuple(by_label.values())


def select_explainers(
    wanted: object, files: Iterable[Path] = (), *, rationale: bool = True
) -> tuple[Selected, ...]:
    """Resolve a text as `find_explainers` does, an explainer object, or a list of both."""
    files = tuple(files)
    entries = wanted if isinstance(wanted, list | tuple) else (wanted,)
    chosen: dict[str, Selected] = {}
    for entry in entries:
        if isinstance(entry, str):
            several = find_explainers(entry, files, rationale=rationale)
        else:
            several = (entry if isinstance(entry, Selected) else select_object(entry),)
        for selected in several:
            other = chosen.setdefault(selected.label, selected)
            if other.explainer != selected.explainer:
                raise FaithbenchError(
                    f"two different explainers are called {selected.label!r}; name one of them "
                    "with @faithbench.explainer('name')"
                )
    return tuple(chosen.values())


def select_object(explainer: object) -> Selected:
    """Return an explainer that is at hand as a value, under the name that it is known by.

    That is the name of a built-in one, else the one that `@explainer` gave its class, else the
    name of the class. A class stands for its defaults.
    """
    cls = explainer if isinstance(explainer, type) else type(explainer)
    name = getattr(cls, EXPLAINER_MARK, cls.__name__)
    checked = explainer_class(Plugin(name, f"module {cls.__module__}", "", lambda: cls))
    value = checked() if isinstance(explainer, type) else explainer
    for built_in, listed in EXPLAINERS.items():
        if listed.target == f"{cls.__module__}:{cls.__qualname__}":
            return Selected(built_in, cast("Explainer", value), version=version("faithbench"))
    return Selected(name, cast("Explainer", value), f"module {cls.__module__}")


def _by_name(files: Iterable[Path]) -> dict[str, list[Plugin]]:
    plugins: dict[str, list[Plugin]] = {}
    loose = (plugin for path in files for plugin in plugins_of_file(path.resolve()))
    for plugin in (*installed_plugins(), *loose):
        plugins.setdefault(plugin.name, []).append(plugin)
    return plugins


def _choose(name: str, settings: dict[str, str], plugins: dict[str, list[Plugin]]) -> Selected:
    origins = [p.origin for p in plugins.get(name, [])]
    if name in EXPLAINERS:
        origins.append("faithbench itself")
    if len(origins) > 1:
        raise FaithbenchError(
            f"explainer {name!r} is defined by {' and '.join(sorted(origins))}; uninstall one"
        )
    if name in plugins:
        (plugin,) = plugins[name]
        explainer = configure(name, explainer_class(plugin), settings)
        return Selected(name, explainer, plugin.origin.removeprefix("package "), plugin.version)
    ours = version("faithbench")
    if name.startswith("captum:"):
        from faithbench.explainers.captum import adapt

        cls = adapt(name.removeprefix("captum:"))
        return Selected(name, configure(name, cls, settings), "captum", version("captum"))
    if name not in EXPLAINERS:
        raise unknown("explainer", name, [*EXPLAINERS, *plugins])
    module, _, attribute = EXPLAINERS[name].target.partition(":")
    cls = getattr(importlib.import_module(module), attribute)
    return Selected(name, configure(name, cls, settings), version=ours)


def explainer_class(plugin: Plugin) -> type[Any]:
    """Load the class of a plugin; refuse one that is not an explainer."""
    cls = plugin.load()
    if not (isinstance(cls, type) and is_dataclass(cls) and "__call__" in dir(cls)):
        raise FaithbenchError(
            f"plugin {plugin.name!r} of {plugin.origin} is not an explainer: it must be a frozen "
            "dataclass with a __call__ method"
        )
    for field in fields(cls):
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if not isinstance(default, bool | int | float | str):
            found = "no default" if default is MISSING else f"the default {default!r}"
            raise FaithbenchError(
                f"explainer {plugin.name!r} has a setting {field.name!r} with {found}; records can "
                "keep true or false, numbers and texts: give it one of these"
            )
    return cls


def _expand(
    wanted: list[tuple[str, dict[str, str]]], rationale: bool
) -> list[tuple[str, dict[str, str]]]:
    """Replace `all` and `all-<family>` by the names they stand for."""
    expanded: list[tuple[str, dict[str, str]]] = []
    families = {entry.family for entry in EXPLAINERS.values()}
    for name, settings in wanted:
        family = name.removeprefix("all-")
        if name == "all" or (name != family and family in families):
            if settings:
                raise FaithbenchError(f"{name} takes no settings; name the explainers one by one")
            known = [(n, e) for n, e in EXPLAINERS.items() if rationale or not e.needs_rationale]
            expanded += [
                (n, {})
                for n, e in known
                if (name == "all" and not e.by_name_only) or e.family == family
            ]
        elif name != family and family not in families:
            raise unknown("family", family, families)
        else:
            expanded.append((name, settings))
    return expanded


def configure(name: str, cls: type[Any], settings: dict[str, str]) -> Any:
    """Build an explainer or objective from text settings, each read as its default's type."""
    defaults = asdict(cls())
    values: dict[str, bool | int | float | str] = {}
    for key, text in settings.items():
        if key not in defaults:
            raise unknown(f"setting of {name}", key, defaults or ["(it has none)"])
        values[key] = _read(name, key, text, type(defaults[key]))
    return cls(**values)


def _read(name: str, key: str, text: str, wanted: type[Any]) -> bool | int | float | str:
    if wanted is bool:
        if text.lower() not in ("true", "false"):
            raise FaithbenchError(f"{name}: {key} is true or false, found {text!r}")
        return text.lower() == "true"
    try:
        value: int | float | str = wanted(text)
    except ValueError:
        kind = {int: "whole number", float: "number"}.get(wanted, wanted.__name__)
        raise FaithbenchError(f"{name}: {key} is a {kind}, found {text!r}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise FaithbenchError(f"{name}: {key} is a finite number, found {text!r}")
    return value

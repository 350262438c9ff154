"""Explainers from outside: installed packages, loose files, and captum's classes by name."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from faithbench.errors import FaithbenchError

GROUP = "faithbench"
Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Plugin:
    """An explainer somebody else wrote: the package or file it comes from, and how to load it."""

    name: str
    origin: str
    version: str
    load: Callable[[], type[Any]]


def explainer(name: str) -> Callable[[Kind], Kind]:
    """Name an explainer class of a loose file, for `--plugin file.py`."""

    def mark(kind: Kind) -> Kind:
        kind.faithbench_name = name  # type: ignore[attr-defined]  # read by plugins_of_file
        return kind

    return mark


def installed_plugins() -> Iterator[Plugin]:
    """List entry points of the group `faithbench`, importing none of them."""
    for point in entry_points(group=GROUP):
        package = point.dist
        yield Plugin(
            point.name,
            f"package {package.name if package else 'unknown'}",
            package.version if package else "",
            _loader(point),
        )


def _loader(point: EntryPoint) -> Callable[[], type[Any]]:
    def load() -> type[Any]:
        # Whatever a stranger's module raises must not take the others with it.
        try:
            kind: type[Any] = point.load()
        except Exception as error:
            raise FaithbenchError(
                f"plugin {point.name!r} ({point.value}) does not import: "
                f"{type(error).__name__}: {error}"
            ) from error
        return kind

    return load


@cache
def plugins_of_file(path: Path) -> tuple[Plugin, ...]:
    """Import a loose file and list the classes it names with `@explainer`."""
    if not path.is_file():
        raise FaithbenchError(f"plugin file {path} does not exist; check --plugin")
    name = f"faithbench_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FaithbenchError(f"plugin file {path} is not a Python file; check --plugin")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FaithbenchError(
            f"plugin file {path.name} does not import: {type(error).__name__}: {error}"
        ) from error
    found = [k for k in vars(module).values() if isinstance(k, type) and _is_named(k, name)]
    if not found:
        raise FaithbenchError(
            f"plugin file {path.name} names no explainer; put @faithbench.explainer('name') "
            "above its class"
        )
    return tuple(
        # The decorator has put the name on the class, which its type does not say.
        Plugin(kind.faithbench_name, f"file {path.name}", "", _returning(kind))  # type: ignore[attr-defined]
        for kind in found
    )


def _is_named(kind: type, module: str) -> bool:
    return kind.__module__ == module and hasattr(kind, "faithbench_name")


def _returning(kind: type[Any]) -> Callable[[], type[Any]]:
    return lambda: kind

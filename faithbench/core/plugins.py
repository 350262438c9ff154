"""Code from elsewhere: what installed packages and loose files bring, imported with clear errors.

Explainers, metrics and data sources are found here. A package names them in an entry-point group; a
loose file puts a decorator above them, which leaves a mark that a reader of the module looks for.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from faithbench.core.errors import FaithbenchError

EXPLAINER_MARK = "faithbench_name"
"""The attribute that `@explainer` puts on a class: its name."""
METRIC_MARK = "faithbench_metrics"
"""The attribute that `@metric` puts on a function: the metrics that it computes."""


@dataclass(frozen=True)
class Plugin:
    """An explainer, metric or source from elsewhere: its package or file, and how to load it."""

    name: str
    origin: str
    version: str
    load: Callable[[], Any]


def installed(group: str) -> Iterator[Plugin]:
    """List the entry points of a group, importing none of them."""
    for point in entry_points(group=group):
        package = point.dist
        yield Plugin(
            point.name,
            f"package {package.name if package else 'unknown'}",
            package.version if package else "",
            _loader(point),
        )


def _loader(point: EntryPoint) -> Callable[[], Any]:
    def load() -> Any:
        # Whatever a foreign module raises must not take the other plugins with it.
        try:
            return point.load()
        except Exception as error:
            raise FaithbenchError(
                f"plugin {point.name!r} ({point.value}) does not import: "
                f"{type(error).__name__}: {error}"
            ) from error

    return load


@cache
def module_of_file(path: Path) -> ModuleType:
    """Import a loose file; a second call returns the same module."""
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
    if not (marked_objects(module, EXPLAINER_MARK) or marked_objects(module, METRIC_MARK)):
        raise FaithbenchError(
            f"plugin file {path.name} names no explainer and no metric; put "
            "@faithbench.explainer('name') above a class or @faithbench.metric('name', ...) "
            "above a function"
        )
    return module


def marked_objects(module: ModuleType, mark: str) -> list[Any]:
    """Return what a module itself defines and a decorator has marked, in the file's order."""
    return [
        value
        for value in vars(module).values()
        # What a module imports from another one is that one's to name.
        if getattr(value, "__module__", None) == module.__name__ and hasattr(value, mark)
    ]


def plugin_of_file(path: Path, name: str, value: Any) -> Plugin:
    """Return what a loose file defines under a name."""
    return Plugin(name, f"file {path.name}", "", lambda: value)

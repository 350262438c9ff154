"""Where the rows of tasks come from: each file of this folder is a source, named like the file.

To add the source `x`, write `x.py` here, with the members of `DataSource`, and give `SourceTables`
in `task_schema.py` a field `x`: its table of a task file. Another package can bring a source too,
by an entry point of the group `faithbench.sources`; its table is then called `[sources.x]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from faithbench.core.plugins import Plugin
    from faithbench.data.task_schema import Rationale, SourceTable
    from faithbench.data.tasks import Task

__all__ = [
    "GROUP",
    "DataSource",
    "PlacedRow",
    "SplitRequest",
    "SplitRows",
    "built_in_sources",
    "find_source",
    "installed_sources",
]

GROUP = "faithbench.sources"

PlacedRow = tuple[str, object]
"""A row as it was read, after the place it was read at, which error messages name."""

Table = TypeVar("Table", bound="SourceTable")


@dataclass(frozen=True)
class SplitRequest(Generic[Table]):
    """A split that is asked of a source. `table` is the source's table of the task file.

    `folder` is the data folder that the user gave. `allow_changed` asks for the rows even if they
    are not those that the task pins.
    """

    task: Task
    table: Table
    split: str
    folder: Path | None = None
    allow_changed: bool = False


@dataclass(frozen=True)
class SplitRows:
    """The rows of a split, read as they are asked for, and what is known of them.

    `digest` gives their sha256 once the last row has been taken. `checked` says that the task pins
    these data: by checksum, by a commit, or by shipping them with the package.
    """

    rows: Iterable[PlacedRow]
    digest: Callable[[], str]
    rationale: Rationale
    checked: bool


class DataSource(Protocol[Table]):
    """A source of data: a module, or another object, with these members.

    Reading a `remote` source can fail although nothing seemed to stand in its way; bundled data,
    where there are any, are then taken in its place unless the source was asked for by name.
    """

    table: type[Table]
    remote: bool

    def obstacle(self, wanted: SplitRequest[Table]) -> str | None:
        """Return why this split cannot be read now, or None; cheap, and nothing is loaded."""
        ...

    def read(self, wanted: SplitRequest[Table]) -> SplitRows:
        """Open a split that has no obstacle; a FaithbenchError says what went wrong."""
        ...


@cache
def built_in_sources() -> tuple[str, ...]:
    """Return the names of the sources in this folder, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__)))


@cache
def installed_sources() -> dict[str, Plugin]:
    """Return the sources that other packages bring, by name, importing none of them."""
    from faithbench.core.plugins import installed

    plugins = {plugin.name: plugin for plugin in installed(GROUP)}
    return {name: plugins[name] for name in sorted(plugins) if name not in built_in_sources()}


def find_source(name: str) -> DataSource[Any]:
    """Import a source by its name, which must be known."""
    if name in built_in_sources():
        built_in: DataSource[Any] = import_module(f"{__name__}.{name}")
        return built_in
    source: DataSource[Any] = installed_sources()[name].load()
    return source

"""Training objectives: the losses that `faithbench train --objective` can minimise.

An objective is a frozen dataclass whose fields are its settings, all with defaults, and whose call
returns the loss of a batch; `protocol.py` says what else it may have. Each module of this folder
holds one and is found by being here; an installed package brings its own as an entry point of the
group `faithbench.objectives`:

    @objective("label-smoothing")
    @dataclass(frozen=True)
    class LabelSmoothing:
        amount: float = 0.1

        def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor: ...

This file does not import torch; the modules next to it do, and are imported by `find_objective`.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, TypeVar

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.plugins import Plugin, installed
from faithbench.core.spec import parse_explainers
from faithbench.core.types import Settings
from faithbench.explainers.selection import configure
from faithbench.training.objectives.protocol import (
    Capture,
    ForwardPass,
    Objective,
    captures_of,
    folder_facts,
    is_auxiliary,
    weight_of,
)

__all__ = [
    "DEFAULT",
    "GROUP",
    "Capture",
    "ForwardPass",
    "Objective",
    "Objectives",
    "SelectedObjective",
    "find_objective",
    "find_objectives",
    "known_objectives",
    "objective",
]

DEFAULT = "cross-entropy"
GROUP = "faithbench.objectives"
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class SelectedObjective:
    """An objective with its settings, and the package it comes from ("" for faithbench)."""

    name: str
    loss: Objective
    package: str = ""

    @property
    def settings(self) -> Settings:
        """Every setting with its value."""
        return asdict(self.loss)  # type: ignore[call-overload, no-any-return]  # the protocol cannot say dataclass

    @property
    def is_default(self) -> bool:
        """Whether this is what `faithbench train` minimises unless told otherwise."""
        return self.name == DEFAULT and self.loss == type(self.loss)()

    def facts(self) -> dict[str, Any]:
        """Return what a card says of it."""
        package = {"package": self.package} if self.package else {}
        settings = {**self.settings, **folder_facts(self.loss)}
        return {"name": self.name, "settings": settings, **package}


@dataclass(frozen=True)
class Objectives:
    """The objectives of one training, whose losses are added."""

    selected: tuple[SelectedObjective, ...]

    @property
    def is_default(self) -> bool:
        """Whether there is nothing but the default."""
        return len(self.selected) == 1 and self.selected[0].is_default

    @property
    def losses(self) -> tuple[Objective, ...]:
        """The losses that are computed: all but those of weight 0."""
        return tuple(one.loss for one in self.selected if weight_of(one.loss) != 0)

    @property
    def captures(self) -> frozenset[Capture]:
        """What the losses read of a forward pass besides logits."""
        return frozenset().union(*(captures_of(loss) for loss in self.losses))


_OBJECTIVES: dict[str, type[Any]] = {}


def objective(name: str, *, papers: tuple[str, ...] = ()) -> Callable[[Class], Class]:
    """Register an objective class under the name that `--objective` takes, and papers to cite.

    A paper is a key of faithbench's own or an entry of BibTeX.
    """

    def register(cls: Class) -> Class:
        if papers:
            cls.papers = papers  # type: ignore[attr-defined]  # an optional member of the protocol
        known = _OBJECTIVES.get(name, cls)
        # A module that is imported again, or a notebook cell, may replace its own class.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise FaithbenchError(f"two objectives are named {name!r}; rename one")
        _OBJECTIVES[name] = cls
        return cls

    return register


def find_objective(text: str = DEFAULT) -> SelectedObjective:
    """Resolve `name[:key=value,...]` to an objective of this folder or of an installed package."""
    specs = parse_explainers(text, noun="objective")
    if len(specs) != 1 or not specs[0][0]:
        raise FaithbenchError(
            f"--objective {text!r} should be one objective, such as {DEFAULT} or name:key=value"
        )
    ((name, settings),) = specs
    for module in pkgutil.iter_modules(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    plugins = {plugin.name: plugin for plugin in installed(GROUP)}
    if name in plugins:
        cls, package = _load(plugins[name]), _package(plugins[name])
    elif name in _OBJECTIVES:
        cls, package = _OBJECTIVES[name], ""
    else:
        raise unknown("objective", name, {*_OBJECTIVES, *plugins})
    loss: Objective = configure(name, cls, settings)
    weight = weight_of(loss)
    if not (math.isfinite(weight) and weight >= 0):
        raise FaithbenchError(f"objective {name}: weight is at least 0, found {weight:g}")
    return SelectedObjective(name, loss, package)


def known_objectives() -> list[SelectedObjective]:
    """Return every objective with its defaults: those of this folder, then those of packages."""
    find_objective()
    names = [*sorted(_OBJECTIVES), *sorted(plugin.name for plugin in installed(GROUP))]
    return [find_objective(name) for name in dict.fromkeys(names)]


def find_objectives(texts: Sequence[str] = ()) -> Objectives:
    """Resolve the objectives of a training; those that are only added get cross-entropy first."""
    found = [find_objective(text) for text in texts]
    names = [one.name for one in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise FaithbenchError(f"objective {twice[0]!r} is given twice; name it once")
    if all(is_auxiliary(one.loss) for one in found):
        found.insert(0, find_objective())
    return Objectives(tuple(found))


def _load(plugin: Plugin) -> type[Any]:
    """Load the class of an installed package, refusing anything but an objective."""
    cls: type[Any] = plugin.load()
    if not (isinstance(cls, type) and is_dataclass(cls) and "__call__" in dir(cls)):
        raise FaithbenchError(
            f"plugin {plugin.name!r} of {plugin.origin} is not an objective: it must be a frozen "
            "dataclass with a __call__ method"
        )
    # A plugin may use the decorator as well, and is then registered by being loaded.
    if _OBJECTIVES.get(plugin.name, cls) is not cls:
        raise FaithbenchError(
            f"objective {plugin.name!r} is defined by faithbench itself and {plugin.origin}; "
            "uninstall one"
        )
    return cls


def _package(plugin: Plugin) -> str:
    return f"{plugin.origin.removeprefix('package ')} {plugin.version}".strip()

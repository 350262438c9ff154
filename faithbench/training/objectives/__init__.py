"""Training objectives: the losses that `faithbench train --objective` can minimise.

An objective is a frozen dataclass whose fields are its settings, all with defaults, and whose call
returns the loss of a batch. Each module of this folder holds one and is found by being here; an
installed package brings its own as an entry point of the group `faithbench.objectives`:

    @objective("label-smoothing")
    @dataclass(frozen=True)
    class LabelSmoothing:
        amount: float = 0.1

        def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor: ...

This file does not import torch; the modules next to it do, and are imported by `find_objective`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.plugins import Plugin, installed
from faithbench.core.spec import parse_explainers
from faithbench.core.types import Settings
from faithbench.explainers.selection import configure

if TYPE_CHECKING:
    import torch

    from faithbench.training.items import TrainingBatch

__all__ = [
    "DEFAULT",
    "GROUP",
    "Capture",
    "Capturing",
    "ForwardPass",
    "Objective",
    "SelectedObjective",
    "find_objective",
    "objective",
]

DEFAULT = "cross-entropy"
GROUP = "faithbench.objectives"
Capture = Literal["attentions", "embeddings"]
Class = TypeVar("Class", bound=type)


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """The outputs of the network in training mode, with their graph.

    `logits` has one tensor per output: [items, classes] of a classifier, [items, tokens] for the
    first and for the last token of a question answerer. What an objective asks to be captured
    becomes a field here.
    """

    logits: tuple[torch.Tensor, ...]


class Objective(Protocol):
    """A frozen dataclass whose fields are its settings; returns the loss of a batch.

    It draws no random numbers besides torch's, which checkpoints restore, and keeps nothing
    between batches, so that a killed training ends with the weights of an uninterrupted one. An
    objective that needs more than logits is `Capturing` as well.
    """

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return the loss to minimise, a scalar with its graph."""
        ...


@runtime_checkable
class Capturing(Protocol):
    """The optional member of an objective: which values of the forward pass it reads.

    `attentions` stands for the attention probabilities of each block, [items, heads, queries,
    keys]; `embeddings` for the output of the embedding layer, [items, tokens, width], inside the
    graph, so that `torch.autograd.grad(..., create_graph=True)` gives gradients at the input that
    can be trained on. No objective needs either yet, so training refuses one that has this member.
    """

    captures: ClassVar[frozenset[Capture]]


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


_OBJECTIVES: dict[str, type[Any]] = {}


def objective(name: str) -> Callable[[Class], Class]:
    """Register an objective class under the name that `--objective` takes."""

    def register(cls: Class) -> Class:
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
    if isinstance(loss, Capturing) and loss.captures:
        wanted = " and ".join(sorted(loss.captures))
        raise FaithbenchError(
            f"objective {name!r} asks for {wanted}, which training does not capture yet; "
            "choose an objective of logits alone"
        )
    return SelectedObjective(name, loss, package)


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

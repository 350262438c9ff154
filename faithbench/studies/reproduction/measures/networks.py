"""The networks of a recipe: those that come with faithbench or from the hub, and trained ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import digest_of, slug
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.jsonl import sample_by_digest
from faithbench.data.tasks import Task, load_task
from faithbench.models.model import Model, load_model
from faithbench.studies.reproduction.recipe import ModelSpec
from faithbench.studies.reproduction.request import Clock, ReproduceRequest
from faithbench.studies.reproduction.values import Missing
from faithbench.studies.sparse_attention.networks import train_once
from faithbench.training.recipe import Recipe, Splits, load_splits, usual_metric

TESTED = 1000
"""Test texts that a model itself is scored on, at most."""


@dataclass(frozen=True)
class Network:
    """One network of a recipe: what `load_model` calls it, and what it is explained on."""

    key: str
    ref: str
    task_name: str
    only: str
    seed: int

    @property
    def task(self) -> Task:
        """The task whose texts are explained."""
        return load_task(self.task_name)


@dataclass(frozen=True)
class Networks:
    """Finds, trains and loads the networks of one request."""

    request: ReproduceRequest
    clock: Clock
    progress: Progress
    _found: dict[str, tuple[Network, ...] | Missing] = field(default_factory=dict)

    def of(self, key: str) -> tuple[Network, ...] | Missing:
        """Return the networks of a model, one per seed, training those that are missing.

        Where model or data cannot be had, the cells of this model are missing, and the others go
        on.
        """
        if key not in self._found:
            try:
                found = self._of(key)
                if not isinstance(found, Missing):
                    self.texts(found[0])
                    self.load(found[0])
            except FaithbenchError as error:
                found = Missing(str(error).replace(f"{self.request.results}/", ""))
                self.progress(f"{key}: {error}", 0, 0)
            self._found[key] = found
        return self._found[key]

    def _of(self, key: str) -> tuple[Network, ...] | Missing:
        spec = self.request.recipe.models[key]
        if self.request.source == "hub":
            if spec.hub is None:
                return Missing("the paper's own model is not on the hub")
            task = spec.hub.task or spec.task
            return (Network(key, spec.hub.name, task, spec.hub.only or spec.only, 0),)
        if spec.long and not (self.request.long or self.request.quick):
            return Missing("takes hours on a CPU; --long")
        if spec.bundled:
            return (Network(key, spec.bundled, spec.task, spec.only, 0),)
        if spec.train is None:
            return Missing("only the hub has this model; --model hub")
        return tuple(
            self._trained(key, spec, seed) for seed in range(self.request.seeds_of(spec.seeds))
        )

    def texts(self, network: Network) -> Dataset:
        """Return the test texts that are explained, always the same ones."""
        spec = self.request.recipe.models[network.key]
        data = self._read(network.task_name, "test")
        if network.only:
            label = network.task.labels.index(network.only)
            data = replace(data, examples=tuple(e for e in data.examples if e.label == label))
        return replace(data, examples=sample_by_digest(data.examples, self.request.texts(spec)))

    def tested(self, network: Network) -> Dataset:
        """Return the test texts that the network itself is scored on."""
        limit = 8 * self.request.texts(self.request.recipe.models[network.key])
        data = self._read(network.task_name, "test")
        return replace(
            data, examples=sample_by_digest(data.examples, limit if self.request.quick else TESTED)
        )

    def load(self, network: Network) -> Model:
        """Load a network; the last ones are kept."""
        return _loaded(network.ref, network.task_name, self.request.device)

    def _read(self, task: str, split: str) -> Dataset:
        source = "hub" if self.request.source == "hub" else "auto"
        return _data(task, split, self.request.folder, source)

    def _trained(self, key: str, spec: ModelSpec, seed: int) -> Network:
        """Train a network unless it is there; its folder is named by all that decides it."""
        task, how = load_task(spec.task), self.request.training(spec)
        recipe = Recipe(
            seed=seed,
            method="full" if how.arch else "lora",
            objectives=how.objectives,
            metric=usual_metric(task),
            epochs=how.epochs,
            patience=how.epochs,
            learning_rate=how.learning_rate or Recipe.learning_rate,
            batch_size=how.batch_size,
            max_tokens=how.max_tokens,
            dropout=how.dropout,
            encoder_dropout=how.encoder_dropout,
            arch=how.arch,
            vectors=how.vectors,
            width=how.width,
        )
        limits = (how.limit, how.dev_limit, TESTED)
        digest = digest_of([task.name, task.version, asdict(recipe), limits])
        folder = self.request.results / "models" / slug(f"{key}-seed{seed}-{digest[:8]}")
        what = f"training {key}, seed {seed}"
        self.progress(what, 0, 0)
        with self.clock.piece(f"train {folder.name}"):
            splits = _splits(spec.task, self.request.folder, limits)
            train_once(recipe, splits, folder, _named(self.progress, what), self.request.device)
        return Network(key, str(folder), spec.task, spec.only, seed)


def _named(progress: Progress, name: str) -> Callable[[str, int, int], None]:
    return lambda what, done, total: progress(f"{name}: {what}", done, total)


@lru_cache(maxsize=4)
def _loaded(ref: str, task: str, device: str) -> Model:
    of = load_task(task)
    return load_model(ref, labels=of.labels, kind=of.kind, device=device)


@lru_cache(maxsize=8)
def _data(task: str, split: str, folder: Path | None, source: str) -> Dataset:
    return load_dataset(load_task(task), source=source, split=split, folder=folder)


@lru_cache(maxsize=2)
def _splits(
    task: str, folder: Path | None, limits: tuple[int | None, int | None, int | None]
) -> Splits:
    return load_splits(load_task(task), folder=folder, limits=limits)

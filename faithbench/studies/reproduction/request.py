"""What a user asks of `faithbench reproduce`, and the clock of the work that it takes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from faithbench.core.files import read_object, replace_file
from faithbench.studies.reproduction.recipe import ModelSpec, PaperRecipe, Training

ModelSource = Literal["bundled", "hub"]
SEEDS = 3
"""Seeds of explainers that draw at random, and of students, where a recipe says nothing."""
QUICK_TEXTS = 8
QUICK_LESSONS = 100
"""Training texts of a quick reproduction, for models and for students."""


@dataclass(frozen=True)
class ReproduceRequest:
    """The options of `faithbench reproduce`, for one paper.

    Models, students and records are made below `results`, where they are found again; records may
    also be in the folders `also`, as those of a leaderboard. Pages go into `out`. `limit` and
    `seeds` override the recipe's. A `quick` one shows in minutes that all works; a `long` one makes
    also those models that take hours.
    """

    recipe: PaperRecipe
    items: tuple[str, ...]
    results: Path
    out: Path
    source: ModelSource = "bundled"
    folder: Path | None = None
    limit: int | None = None
    seeds: int | None = None
    quick: bool = False
    long: bool = False
    jobs: int | None = None
    device: str = "auto"
    also: tuple[Path, ...] = ()

    @property
    def options(self) -> str:
        """The options that override the recipe, as they are typed."""
        asked = {"limit": self.limit, "seeds": self.seeds}
        return "".join(f" --{name} {value}" for name, value in asked.items() if value is not None)

    def texts(self, spec: ModelSpec) -> int:
        """Return the number of test texts that are explained."""
        return min(self.limit or spec.texts, QUICK_TEXTS if self.quick else 10**9)

    def lessons(self, spec: ModelSpec) -> int:
        """Return the number of training texts that a student learns from."""
        return min(spec.lessons, QUICK_LESSONS) if self.quick else spec.lessons

    def seeds_of(self, usual: int) -> int:
        """Return the number of seeds, of models or of explainers that draw at random."""
        return 1 if self.quick else self.seeds or usual

    def training(self, spec: ModelSpec) -> Training:
        """Return how a model is trained."""
        assert spec.train is not None  # only trained models are asked about
        if not self.quick:
            return spec.train
        few = {"limit": QUICK_LESSONS, "dev_limit": QUICK_TEXTS, "epochs": 1}
        return spec.train.model_copy(update=few)


@dataclass
class Clock:
    """CPU seconds of each piece of work, kept where it was done: a second call adds nothing.

    Pieces that are found again have the time of the call that made them; `used` collects the
    pieces that were asked for since it was last emptied.
    """

    path: Path
    seconds: dict[str, float] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the times of earlier calls."""
        if self.path.is_file():
            self.seconds = read_object(self.path, "remove it")

    @contextmanager
    def piece(self, name: str) -> Iterator[None]:
        """Time a piece of work, unless an earlier call did it."""
        self.used.add(name)
        before = _cpu()
        yield
        if name not in self.seconds:
            self.seconds[name] = round(_cpu() - before, 1)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(self.seconds, sort_keys=True, indent=1)
            replace_file(self.path, f"{text}\n".encode())

    def spent(self) -> float:
        """Return the seconds of all pieces that were asked for, and forget which they were."""
        total = sum(self.seconds.get(name, 0.0) for name in self.used)
        self.used = set()
        return round(total, 1)


def _cpu() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system

"""Which networks the study is about: tasks, architectures, projections and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import slug
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import Task, load_task
from faithbench.models.architectures import ATTENTIVE
from faithbench.training.recipe import Recipe

SPARSITIES: dict[str, float | None] = {
    "softmax": None,
    "sparsegen:-10": -10.0,
    "sparsegen:-1": -1.0,
    "sparsemax": 0.0,
    "sparsegen:0.5": 0.5,
    "sparsegen:0.9": 0.9,
}
"""The projections of the study, and the lambda of each; softmax has none."""

BODIES = {"news20": "news20-body"}
"""Tasks that the study reads without what gives the class away, by the name users know."""


@dataclass(frozen=True)
class TaskPlan:
    """How networks are trained and measured on a task.

    Texts are cut at `max_tokens`. `texts` test texts are measured; of each, Eq. 5 is asked for at
    most `positions` inner representations. The most seeds and the projections are what the paper's
    tables and figures need of the task. `limit` is the most texts of each split that are read.
    `adversaries` are trained for the paper's last check.
    """

    epochs: int
    max_tokens: int
    texts: int
    positions: int = 16
    most_seeds: int = 99
    projections: tuple[str, ...] = tuple(SPARSITIES)
    limit: int | None = None
    adversaries: bool = True


PLANS = {
    "sst2": TaskPlan(epochs=3, max_tokens=100, texts=200, positions=64),
    "news20-body": TaskPlan(epochs=4, max_tokens=100, texts=100),
    "imdb": TaskPlan(
        epochs=2,
        max_tokens=150,
        texts=100,
        most_seeds=1,
        projections=("softmax", "sparsemax", "sparsegen:0.9"),
        limit=6000,
        adversaries=False,
    ),
}
"""The paper's three tasks. IMDb is the long one, of which Figure 3 needs the end points: 6,000 of
its reviews are learned from, which takes minutes instead of a quarter of an hour per network."""

QUICK = ("softmax", "sparsegen:-1", "sparsemax", "sparsegen:0.9")
"""The projections of `--quick`."""

OTHERS = TaskPlan(epochs=3, max_tokens=100, texts=100)
"""How any other task with classes and single texts is done."""


def quickened(plan: TaskPlan) -> TaskPlan:
    """Return what `--quick` makes of a plan: it shows that all works, and proves nothing."""
    few = tuple(one for one in plan.projections if one in QUICK)
    return replace(plan, epochs=1, texts=12, positions=8, limit=300, most_seeds=1, projections=few)


@dataclass(frozen=True)
class Network:
    """One network of the study."""

    task: Task
    arch: str
    projection: str
    seed: int

    @property
    def strength(self) -> float | None:
        """The lambda of sparsegen; None for projections that have none."""
        return SPARSITIES.get(self.projection)

    @property
    def name(self) -> str:
        """Its folder's name, which is also the model's name in records."""
        return slug(f"{self.task.name}-{self.arch}-{self.projection}-seed{self.seed}")

    @property
    def label(self) -> str:
        """The name shown while it is worked on."""
        return f"{self.task.name}, {self.arch}, {self.projection}, seed {self.seed}"

    def recipe(self, plan: TaskPlan, vectors: str) -> Recipe:
        """Return how it is trained."""
        return Recipe(
            seed=self.seed,
            method="full",
            epochs=plan.epochs,
            patience=plan.epochs,
            max_tokens=plan.max_tokens,
            encoder_dropout=0.3,
            arch=self.arch,
            vectors=vectors,
            projection=self.projection,
        )


@dataclass(frozen=True)
class StudyRequest:
    """What a user asks of `faithbench study sparse-attention`.

    Networks are kept in `out / models`, records in `out / records`, the page in `out`.
    """

    tasks: tuple[str, ...]
    out: Path
    seeds: int = 3
    archs: tuple[str, ...] = ATTENTIVE
    vectors: str = "minilm"
    quick: bool = False
    folder: Path | None = None
    source: str = "auto"
    jobs: int = 1
    device: str = "auto"

    @property
    def models(self) -> Path:
        """The folder of trained networks."""
        return self.out / "models"

    @property
    def records(self) -> Path:
        """The folder of records."""
        return self.out / "records"

    def plan_of(self, task: Task) -> TaskPlan:
        """Return how a task is done."""
        plan = PLANS.get(task.name, OTHERS)
        return quickened(plan) if self.quick else plan


def study_tasks(names: Sequence[str]) -> tuple[Task, ...]:
    """Find the tasks of a study, each once; refuse those that such networks cannot learn."""
    if not names:
        raise FaithbenchError("a study needs a task; give --task sst2,news20")
    bodies = dict.fromkeys(BODIES.get(name, name) for name in names)
    tasks = tuple(load_task(name) for name in bodies)
    for task in tasks:
        kind = KINDS[task.kind]
        if kind.network != "SequenceClassification" or kind.texts != 1:
            raise FaithbenchError(
                f"task {task.name} is of kind {task.kind}, and these networks classify single "
                "texts; choose a classification task, such as sst2"
            )
        if not any("train" in table.splits for table in task.tables.values()):
            raise FaithbenchError(
                f"task {task.name} has no training data, so that no network can be trained on it; "
                "choose another, such as sst2"
            )
    return tasks


def networks_of(request: StudyRequest, task: Task) -> tuple[Network, ...]:
    """Return the networks of one task: architectures, then projections, then seeds."""
    if not request.archs:
        raise FaithbenchError(f"a study needs an architecture; give --arch {','.join(ATTENTIVE)}")
    for arch in request.archs:
        if arch not in ATTENTIVE:
            raise unknown("architecture with attention", arch, ATTENTIVE)
    plan = request.plan_of(task)
    return tuple(
        Network(task, arch, projection, seed)
        for arch in dict.fromkeys(request.archs)
        for projection in plan.projections
        for seed in range(min(request.seeds, plan.most_seeds))
    )

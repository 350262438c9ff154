"""What the study of L2E distils: teachers, forms, numbers of training texts, and joint students."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faithbench.explainers.students.card import Form, Target, student_name

SAMPLERS = ("lime:samples=64", "kernel-shap:samples=64")
TEACHERS = ("occlusion", "input-x-gradient", "lrp", *SAMPLERS, "deep-shap")
"""Of the paper; its Gradient is input-x-gradient."""

TEXTS: dict[str, dict[str, int | None]] = {
    "sst2": {teacher: 3000 if teacher in SAMPLERS else None for teacher in TEACHERS},
    "cola": {**dict.fromkeys(TEACHERS, 2000)},
    "agnews": {teacher: 1000 if teacher == "occlusion" else 3000 for teacher in TEACHERS},
    "movies": {"deep-shap": 300},
}
"""Training texts by task and teacher; None is all of them (sst2: 6,920)."""
ONLY_LABELLED = ("movies",)
"""Tasks whose texts are too long for the pairs of the ranking form."""
TESTED = {"movies": 50}
"""Test texts, where they are not 200."""
SEEDS = 3

TOGETHER = {"sst2": ("deep-shap", "occlusion", "kernel-shap:samples=64")}
"""Teachers that are distilled into one student, by task: all of them explain the same texts."""


@dataclass(frozen=True)
class Pair:
    """A student and whom it learned from: one teacher, or several that are joined by commas."""

    task: str
    teacher: str
    form: Form
    target: Target = "signed"
    texts: int | None = None

    @property
    def joint(self) -> bool:
        """Whether it learned from several teachers."""
        return "," in self.teacher

    @property
    def folder(self) -> Path:
        """The student's folder below that of the study; fewer texts than usual have their own."""
        name = student_name(self.teacher.replace(",", "+"), self.form, self.target)
        usual = self.joint or self.texts == TEXTS[self.task][self.teacher]
        return Path(self.task if usual else f"{self.task}-{self.texts}") / name

    @property
    def shown(self) -> str:
        """The teacher's name in tables."""
        return self.teacher.replace(":samples=", "-")

    @property
    def reading(self) -> str:
        """The form, and how weights are read."""
        return f"{self.form}, by size" if self.target == "absolute" else self.form


def study(task: str) -> Iterator[Pair]:
    """Yield the students of a task, those that matter most first."""
    texts = TEXTS[task]
    forms: tuple[Form, ...] = ("labelling",) if task in ONLY_LABELLED else ("labelling", "ranking")
    for teacher in reversed(TEACHERS):
        if teacher in texts:
            for form in forms:
                yield Pair(task, teacher, form, texts=texts[teacher])
    if "ranking" in forms:
        yield Pair(task, "deep-shap", "ranking", "absolute", texts["deep-shap"])


def joint(task: str) -> Iterator[Pair]:
    """Yield the students of several teachers, then those of each alone on the same texts."""
    teachers = TOGETHER.get(task, ())
    forms: tuple[Form, ...] = ("labelling", "ranking")
    if not teachers:
        return
    counts = [count for one in teachers if (count := TEXTS[task][one]) is not None]
    texts = min(counts, default=None)
    for one in (",".join(teachers), *teachers):
        for form in forms:
            yield Pair(task, one, form, texts=texts)


def tested(task: str) -> int:
    """Return the number of test texts that are explained."""
    return TESTED.get(task, 200)

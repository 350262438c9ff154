"""The folder of a student: its card, and the weights of its initialisations, read with care."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cached_sha256, slug
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.explainers.students.network import Student, StudentShape

if TYPE_CHECKING:
    import torch

    from faithbench.models.model import Model

Form = Literal["labelling", "ranking"]
Target = Literal["signed", "absolute"]
LabelNames = tuple[
    Literal["high negative"],
    Literal["low negative"],
    Literal["neutral"],
    Literal["low positive"],
    Literal["high positive"],
]
LABELS: LabelNames = (
    "high negative",
    "low negative",
    "neutral",
    "low positive",
    "high positive",
)
"""The five labels of the labelling form, in the order of a student's outputs."""
CARD = "card.json"


class TeacherFacts(Facts):
    """The explainer that a student learned from, and the digest of the rows of its scores."""

    name: str
    package: str
    version: str
    settings: dict[str, bool | int | float | str]
    assets: dict[str, str]
    rows_sha256: str


class LessonFacts(Facts):
    """The texts that a student learned from: `n` of them, and `held_out` to choose the epoch by."""

    source: str
    split: str
    n: Count
    held_out: Count
    sha256: str


class Initialisation(Facts):
    """One of the networks: its seed, its loss after each epoch, and the epoch that was kept.

    The first of the `dev_losses`, on texts held out, is that of the untrained network; they are
    means per label or pair. `correlation` is Spearman's with the teacher's weights there, the mean
    over texts.
    """

    seed: int
    file: str
    sha256: str
    train_losses: tuple[float, ...]
    dev_losses: tuple[float, ...]
    epoch: Count
    correlation: float | None


class StudentCard(Facts):
    """What a student is: whom it learned from, which model it explains, and how it was trained."""

    schema_version: Literal[1] = 1
    task: str
    task_version: int
    teacher: str
    teachers: tuple[TeacherFacts, ...]
    form: Form
    target: Target
    released: bool
    labels: LabelNames | None
    model: str
    model_sha256: str | None = None
    weights_sha256: str
    classes: tuple[str, ...]
    lessons: LessonFacts
    shape: StudentShape
    recipe: dict[str, bool | int | float | str]
    initialisations: tuple[Initialisation, ...] = ()


def student_name(teacher: str, form: str, target: str = "signed", released: bool = False) -> str:
    """Return the name of a student's folder: teacher and form, and what is not the default."""
    unusual = ("-absolute" * (target == "absolute" and form == "ranking")) + "-released" * released
    return slug(f"{teacher}-{form}{unusual}")


def read_student(folder: Path) -> StudentCard:
    """Read the card of a student's folder, naming what is wrong with it."""
    try:
        # By its bytes: a run asks again with every batch, and a small file is read in no time.
        return _parsed(folder, (folder / CARD).read_bytes())
    except OSError:
        where = "holds no card of a student" if folder.is_dir() else "does not exist"
        raise FaithbenchError(
            f"student folder {folder} {where}; give the folder that `faithbench distil` wrote"
        ) from None


@lru_cache(maxsize=16)
def _parsed(folder: Path, content: bytes) -> StudentCard:
    try:
        card = StudentCard.model_validate_json(content)
    except ValidationError as error:
        raise FaithbenchError(
            f"{folder.name}/{CARD} is not the card of a student: {describe_error(error)}; give the "
            "folder that `faithbench distil` wrote"
        ) from None
    if not card.initialisations:
        raise FaithbenchError(
            f"student folder {folder.name} holds no trained network; run faithbench distil again"
        )
    return card


def check_student(card: StudentCard, model: Model) -> None:
    """Refuse a student that learned to explain another model."""
    if not model.weights_sha256:
        raise FaithbenchError(
            f"model {model.name!r} has no digest of its weights, so that no student can be known "
            "to be its own; save it to a folder and load it from there"
        )
    if not model.is_known_by(card.model_sha256, card.weights_sha256):
        known = card.model_sha256 or card.weights_sha256
        raise FaithbenchError(
            f"this student of {card.teacher} explains model {card.model!r} (sha256 "
            f"{known[:12]}), not {model.name!r} ({model.sha256[:12]}); "
            f"distil one: faithbench distil --teacher {card.teacher} --task <task> "
            f"--model {model.name}"
        )


def load_student(folder: Path, card: StudentCard, number: int, model: Model) -> Student:
    """Load one of a student's networks to explain a model; numbers beyond the last start anew.

    It computes in single precision also where the model has less, and in double where it has more.
    """
    facts = card.initialisations[number % len(card.initialisations)]
    path = folder / facts.file
    if not path.is_file() or path.parent.resolve() != folder.resolve():
        raise FaithbenchError(
            f"student folder {folder.name} lacks {facts.file}, which its card names; "
            "run faithbench distil again"
        )
    if cached_sha256(path) != facts.sha256:
        raise FaithbenchError(
            f"{folder.name}/{facts.file} is not the file of its card: another digest; "
            "run faithbench distil again"
        )
    double = str(model.dtype) == "torch.float64"
    return _loaded(path, facts.sha256, card.shape, model.device, double)


# A network is read once per process: runs ask for it again with every batch.
@lru_cache(maxsize=16)
def _loaded(
    path: Path, _sha256: str, shape: StudentShape, device: torch.device, double: bool
) -> Student:
    from safetensors.torch import load_file

    weights: dict[str, Any] = load_file(path)
    student = Student(shape)
    try:
        student.load_state_dict(weights)
    except RuntimeError:
        raise FaithbenchError(
            f"{path.name} of student {path.parent.name} does not fit the shape on its card; "
            "run faithbench distil again"
        ) from None
    student = student.to(device).eval().requires_grad_(False)
    return student.double() if double else student

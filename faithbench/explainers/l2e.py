"""L2E: a small network that has learned to explain as another explainer does (Situ et al. 2021)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

import torch

from faithbench.core.errors import CannotServeError, FaithbenchError, unknown
from faithbench.core.types import Batch, Encoding
from faithbench.explainers.students.card import (
    Form,
    StudentCard,
    Target,
    check_student,
    load_student,
    read_student,
    student_name,
)
from faithbench.explainers.students.network import Student, StudentShape
from faithbench.models.flops import FlopsByLength, count_by_length, flops_of
from faithbench.models.model import Model
from faithbench.models.session import Session

IMPORTANCE = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""What each of the five labels counts, from high negative to high positive."""


@dataclass(frozen=True)
class L2e:
    """Ask a small network that learned to explain as another explainer does.

    The student of `teacher` and `form` comes with the model; `student` is the folder of another,
    whose card then says the rest. Labels of the `labelling` form count from -2, high negative, to
    2, high positive, and a score is the expected count; scores of the `ranking` form are its
    outputs, which order tokens by the teacher's weights (`target` signed) or by their magnitude
    (absolute, as in the paper). A student has several initialisations: they are its seeds.
    """

    stochastic: ClassVar[bool] = True
    folder_settings: ClassVar[tuple[str, ...]] = ("student",)

    teacher: str = "deep-shap"
    form: str = "labelling"
    target: str = "signed"
    released: bool = False
    student: str = ""

    def __post_init__(self) -> None:
        """Take the settings of a student that is given by its folder from the folder's card."""
        for noun, value, known in (
            ("form of l2e", self.form, get_args(Form)),
            ("target of l2e", self.target, get_args(Target)),
        ):
            if value not in known:
                raise unknown(noun, value, known)
        if self.student:
            card = read_student(Path(self.student))
            for name in ("teacher", "form", "target", "released"):
                # Frozen for everybody else: a record must not name a teacher that it was not.
                object.__setattr__(self, name, getattr(card, name))

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the student's scores of each token for the class that is explained."""
        model = session.model
        folder, card = self._found(model)
        student = load_student(folder, card, batch.seed, model)
        with torch.no_grad():
            outputs = student(
                model.network.get_input_embeddings(),
                batch.ids,
                batch.types,
                batch.attention,
                batch.targets,
            )[:, 1:-1]
        lengths = batch.attention.sum(dim=1).tolist()
        session.meter.charge(elsewhere=price(student, model, lengths))
        return scores_of(outputs)

    def check(self, model: Model, encodings: Sequence[Encoding]) -> None:
        """Refuse a model that the student was not made for, and tasks without classes."""
        self._found(model)

    def assets(self, model: Model) -> dict[str, str]:
        """Name the networks of the student, with their digests."""
        _, card = self._found(model)
        return {
            f"student {facts.seed} of {card.teacher} ({card.form})": facts.sha256
            for facts in card.initialisations
        }

    def _found(self, model: Model) -> tuple[Path, StudentCard]:
        """Return the student's folder and card, if it explains this model."""
        if not model.kind.has_classes:
            raise CannotServeError(
                f"l2e explains predicted classes, and model {model.name!r} is a "
                f"{model.kind.model_noun}; choose another explainer"
            )
        folder = Path(self.student) if self.student else self._bundled(model)
        card = read_student(folder)
        check_student(card, model)
        if len(card.classes) != len(model.labels):
            raise FaithbenchError(
                f"this student knows the classes {', '.join(card.classes)}, and model "
                f"{model.name!r} has {len(model.labels)}; distil a student of this model"
            )
        return folder, card

    def _bundled(self, model: Model) -> Path:
        name = student_name(self.teacher, self.form, self.target, self.released)
        folder = None if model.folder is None else model.folder / "students" / name
        if folder is not None and folder.is_dir():
            return folder
        students = [] if folder is None else sorted(p.name for p in folder.parent.glob("*/"))
        known = f" (there are: {', '.join(students)})" if students else ""
        raise CannotServeError(
            f"model {model.name!r} comes with no student {name!r}{known}; make one: faithbench "
            f"distil --teacher {self.teacher} --form {self.form} --task <task> --model "
            f"{model.name}, and name its folder: l2e:student=FOLDER"
        )


def scores_of(outputs: torch.Tensor) -> torch.Tensor:
    """Return a score per position: the expected importance of its label, or the output itself."""
    if outputs.shape[-1] == 1:
        return outputs[:, :, 0]
    return outputs.softmax(dim=-1) @ outputs.new_tensor(IMPORTANCE)


def price(student: Student, model: Model, lengths: Sequence[int]) -> float:
    """Return the FLOPs of a student's passes as shares of the model's over as many tokens, summed.

    A pass of the model itself, which finds out the class that is explained, is not among them.
    """
    # By digest, because the networks of max_sensitivity are copies of one that was counted.
    key = (student.shape, model.sha256)
    if key not in _prices:
        _prices[key] = (flops_of_student(student, model), flops_of(model))
    own, whole = _prices[key]
    return sum(own(length) / whole(length) for length in lengths)


_prices: dict[tuple[StudentShape, str], tuple[FlopsByLength, FlopsByLength]] = {}


def flops_of_student(student: Student, model: Model) -> FlopsByLength:
    """Count the FLOPs of a student's pass, by the number of tokens that the model reads."""

    def run(tokens: int) -> object:
        ids = torch.zeros(1, tokens, dtype=torch.long, device=model.device)
        vectors = model.network.get_input_embeddings()
        return student(vectors, ids, ids, torch.ones_like(ids), ids[:, 0])

    return count_by_length(run, model.max_tokens, "a student")

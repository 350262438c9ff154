"""Distil explainers into a student: teachers' scores, lessons, one network per initialisation."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from faithbench.core.errors import FaithbenchError, telling_kept
from faithbench.core.files import check_writable, file_sha256, replace_file
from faithbench.core.spec import setting_text
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import Task
from faithbench.explainers.l2e import flops_of_student, price
from faithbench.explainers.protocol import needs_training, taught
from faithbench.explainers.registry import EXPLAINERS
from faithbench.explainers.selection import Selected, find_explainers, select_explainers
from faithbench.explainers.students.card import (
    CARD,
    LABELS,
    Initialisation,
    LessonFacts,
    StudentCard,
    TeacherFacts,
    load_student,
    read_student,
    student_name,
)
from faithbench.explainers.students.network import StudentShape
from faithbench.models.flops import flops_of
from faithbench.models.model import Model, load_model
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run.backends import choose_backend
from faithbench.run.request import model_for
from faithbench.training.card import check_same_run, claimed, end_run, finished
from faithbench.training.distil.fit import fit_student, read_trained
from faithbench.training.distil.lessons import (
    Lessons,
    check_enough,
    check_teacher,
    make_lessons,
)
from faithbench.training.distil.recipe import DistilRecipe
from faithbench.training.explained_split import explained

COSTS = "costs.json"
_SECONDS = "seconds.json"
LONGEST_RANKED = 1024
"""Tokens of a text beyond which its pairs are too many to rank."""


@dataclass(frozen=True)
class DistilRequest:
    """What a user asks of `faithbench distil`.

    `teacher` names one or several explainers, or records of explanations of the training split;
    several teachers are distilled into one student. Scores of explainers are computed once, in
    `explanations`. `seeds` initialisations are trained, from seed 0 on. Without `out` the student
    goes into `students/<task>`, under the name of its teacher and form.
    """

    task: Task
    teacher: str
    recipe: DistilRecipe = field(default_factory=DistilRecipe)
    seeds: int = 3
    model: str | None = None
    folder: Path | None = None
    source: str = "auto"
    limit: int | None = None
    device: str = "auto"
    jobs: int | None = None
    out: Path | None = None
    explanations: Path = Path("students/explanations")
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Distilled:
    """A student's folder, its card, and what making and asking it costs."""

    folder: Path
    card: StudentCard
    costs: dict[str, Any]


def distil(request: DistilRequest, progress: Progress) -> Distilled:
    """Make a student, or return the one that the same request has made; stopped ones continue."""
    check_writable(request.explanations, "--explanations")
    data = load_dataset(
        request.task,
        source=request.source,
        split="train",
        folder=request.folder,
        limit=request.limit,
    )
    check_enough(data)  # before the teacher is asked, which may take hours
    name, revision = model_for(request.task, data, request.model)
    progress(f"loading the model {name}", 0, 0)
    model = load_model(
        name,
        labels=request.task.labels,
        kind=request.task.kind,
        revision=revision,
        device=request.device,
    )
    _check_kind(model)
    teachers = _teachers(request, model, data, progress)
    label = "+".join(teachers)
    progress("reading explanations", 0, 0)
    records = list(teachers.values())
    lessons = make_lessons(model, data, records)
    _check_length(request.recipe, lessons)
    card = _card(request.recipe, model, data, lessons, label, records)
    recipe = request.recipe
    folder = request.out or Path("students") / request.task.name / student_name(
        label, recipe.form, recipe.target, recipe.released
    )
    facts = card.model_dump(mode="json", exclude={"initialisations"})
    there = finished(facts, folder)
    if there is None or len(there["initialisations"]) != request.seeds:
        _train(request, model, lessons, card, facts | {"seeds": request.seeds}, folder, progress)
        _write_costs(model, records, lessons, folder)
        end_run(folder)
    card = read_student(folder)
    return Distilled(folder, card, json.loads((folder / COSTS).read_text()))


def _check_kind(model: Model) -> None:
    if not model.kind.has_classes:
        raise FaithbenchError(
            f"a student reads the predicted class next to the text, and model {model.name!r} is a "
            f"{model.kind.model_noun}; distil explanations of a classifier"
        )


def _check_length(recipe: DistilRecipe, lessons: Lessons) -> None:
    longest = max(len(lesson.encoding.ids) for lesson in lessons.train)
    if recipe.form == "ranking" and longest > LONGEST_RANKED:
        raise FaithbenchError(
            f"ranking compares every two tokens, and a text has {longest} of them (at most "
            f"{LONGEST_RANKED}); use --form labelling"
        )


def _teachers(
    request: DistilRequest, model: Model, data: Dataset, progress: Progress
) -> dict[str, StoredRecord]:
    """Return the explanations of each teacher by its label: read, or computed and kept."""
    parts = [part.strip() for part in request.teacher.split(",") if part.strip()]
    if parts and all(part.endswith(".json") for part in parts):
        stored = [StoredRecord(Path(part), read(Path(part))) for part in parts]
        for one in stored:
            check_teacher(one, model, data)
        return {_label(one): one for one in stored}
    chosen = tuple(
        _ready(one, data, model) for one in select_explainers(request.teacher, request.plugins)
    )
    backend = choose_backend(request.jobs, str(model.device))
    return explained(model, data, chosen, request.explanations, 1, backend, progress)


def _ready(selected: Selected, data: Dataset, model: Model) -> Selected:
    """Let a teacher that needs it learn from the training split first."""
    if not needs_training(selected.explainer):
        return selected
    return replace(selected, explainer=taught(selected.explainer, data, model))


def _label(stored: StoredRecord) -> str:
    """Return the label of a record's explainer: its name, and the settings that are not usual."""
    facts = stored.record.explainer
    if facts.name not in EXPLAINERS:  # of a plugin that need not be installed here
        return facts.name
    (usual,) = find_explainers(facts.name)
    changed = [
        f"{key}={setting_text(value)}"
        for key, value in facts.settings.items()
        if value != usual.settings.get(key)
    ]
    return facts.name + (":" + ",".join(changed) if changed else "")


def _card(
    recipe: DistilRecipe,
    model: Model,
    data: Dataset,
    lessons: Lessons,
    label: str,
    records: Sequence[StoredRecord],
) -> StudentCard:
    """Return the card of a student that has no network yet."""
    table: Any = model.network.get_input_embeddings()
    vocabulary, vector_width = table.weight.shape
    labelling = recipe.form == "labelling"
    return StudentCard(
        task=data.task.name,
        task_version=data.task.version,
        teacher=label,
        teachers=tuple(_teacher_facts(stored) for stored in records),
        form=recipe.form,
        target=recipe.target,
        released=recipe.released,
        labels=LABELS if labelling else None,
        model=model.public_name,
        model_sha256=model.sha256,
        weights_sha256=model.weights_sha256,
        classes=model.labels,
        lessons=LessonFacts(
            source=data.source,
            split=data.split,
            n=len(lessons.train),
            held_out=len(lessons.dev),
            sha256=data.sha256,
        ),
        shape=StudentShape(
            width=recipe.width,
            feedforward=recipe.feedforward,
            blocks=recipe.blocks,
            heads=recipe.heads,
            embeddings=recipe.embeddings,
            vocabulary=vocabulary,
            vector_width=vector_width,
            classes=len(model.labels),
            outputs=len(LABELS) if labelling else 1,
        ),
        recipe=recipe.facts(),
    )


def _teacher_facts(stored: StoredRecord) -> TeacherFacts:
    facts = stored.record.explainer
    return TeacherFacts(
        name=facts.name,
        package=facts.package,
        version=facts.version,
        settings=facts.settings,
        assets=facts.assets,
        rows_sha256=stored.record.rows.sha256,
    )


def _train(
    request: DistilRequest,
    model: Model,
    lessons: Lessons,
    card: StudentCard,
    facts: dict[str, Any],
    folder: Path,
    progress: Progress,
) -> None:
    """Train the initialisations that are not there yet, and write the card."""
    check_same_run(facts, folder, "a student")
    check_writable(folder, "--out")
    with claimed(facts, folder, "a student"):
        done: list[Initialisation] = []
        with telling_kept(lambda: len(done), request.seeds, "initialisations"):
            for seed in range(request.seeds):
                path = folder / f"student-{seed}.safetensors"
                trained = read_trained(path)
                if trained is None:
                    start = time.process_time()
                    trained = fit_student(
                        model, lessons, request.recipe, card.shape, seed, path, progress
                    )
                    _note_seconds(folder, seed, time.process_time() - start)
                done.append(
                    Initialisation(
                        seed=seed,
                        file=path.name,
                        sha256=file_sha256(path),
                        train_losses=trained.train_losses,
                        dev_losses=trained.dev_losses,
                        epoch=trained.epoch,
                        correlation=trained.correlation,
                    )
                )
        whole = card.model_copy(update={"initialisations": tuple(done)})
        replace_file(folder / CARD, (whole.model_dump_json(indent=1) + "\n").encode())


def _note_seconds(folder: Path, seed: int, seconds: float) -> None:
    """Keep the CPU seconds of a training, for when the others are stopped."""
    known = _noted_seconds(folder)
    known[str(seed)] = round(seconds, 2)
    replace_file(folder / _SECONDS, json.dumps(known).encode())


def _noted_seconds(folder: Path) -> dict[str, float]:
    path = folder / _SECONDS
    return dict(json.loads(path.read_text())) if path.exists() else {}


def _write_costs(
    model: Model, records: Sequence[StoredRecord], lessons: Lessons, folder: Path
) -> None:
    """Write what the student cost to make, apart from what it costs to ask."""
    card = read_student(folder)
    student = load_student(folder, card, 0, model)
    lengths = [len(lesson.encoding.ids) for lesson in (*lessons.train, *lessons.dev)]
    usual = int(median(lengths))
    seconds = _noted_seconds(folder)
    costs = {
        "teachers": [
            {
                "explainer": stored.record.explainer.name,
                "texts": stored.record.task.n,
                "seconds": stored.record.timing.seconds_total,
                "forward_equivalents_per_text": stored.record.cost.forward_equivalents_per_example,
            }
            for stored in records
        ],
        "training": [
            {
                "seed": facts.seed,
                "epochs": len(facts.train_losses),
                # Not there only if the command was killed between two writes.
                "cpu_seconds": seconds.get(str(facts.seed)),
            }
            for facts in card.initialisations
        ],
        "explaining": {
            "parameters": sum(weights.numel() for weights in student.parameters()),
            "bytes": sum((folder / facts.file).stat().st_size for facts in card.initialisations),
            "tokens": usual,
            "student_flops": flops_of_student(student, model)(usual),
            "model_flops": flops_of(model)(usual),
            "forward_equivalents": round(price(student, model, lengths) / len(lengths), 6),
        },
    }
    replace_file(folder / COSTS, (json.dumps(costs, indent=1) + "\n").encode())
    (folder / _SECONDS).unlink(missing_ok=True)

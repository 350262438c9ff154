"""The whole of a distillation: from a task to a folder that `l2e` reads, resumed where stopped."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError, Interrupted
from faithbench.explainers.l2e import L2e
from faithbench.models.model import load_model
from faithbench.models.session import Session
from faithbench.training.distil import distil as room
from faithbench.training.distil.distil import Distilled, DistilRequest, distil
from faithbench.training.distil.recipe import DistilRecipe
from tests.support.builders import make_task
from tests.support.students import put_texts
from tests.support.training import save_base, silent

SMALL = DistilRecipe(width=8, feedforward=8, blocks=1, heads=2, batch_size=32, epochs=1)


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> DistilRequest:
    """Ask for a student of 120 texts, in the folder of a tiny model."""
    root = tmp_path_factory.mktemp("distil")
    put_texts(root, 120)
    model = save_base(root, "bert")
    return DistilRequest(
        task=make_task(hub=None),
        teacher="input-x-gradient",
        recipe=SMALL,
        seeds=2,
        model=str(model),
        folder=root,
        out=root / "student",
        explanations=root / "explanations",
    )


@pytest.fixture(scope="module")
def student(request_of: DistilRequest) -> Distilled:
    return distil(request_of, silent)


def test_a_student_is_a_folder_with_card_weights_and_costs(student: Distilled) -> None:
    names = sorted(path.name for path in student.folder.iterdir())
    networks = ["student-0.safetensors", "student-1.safetensors"]
    assert names == ["card.json", "costs.json", *networks]
    card, costs = student.card, student.costs
    assert (card.teacher, card.form, card.task) == ("input-x-gradient", "labelling", "mini")
    assert card.lessons.n + card.lessons.held_out == 120
    assert [facts.file for facts in card.initialisations] == networks
    assert card.teachers[0].name == "input-x-gradient"
    assert len(card.teachers[0].rows_sha256) == 64
    assert costs["teachers"][0]["texts"] == 120
    assert costs["teachers"][0]["forward_equivalents_per_text"] == 3
    share = costs["explaining"]["student_flops"] / costs["explaining"]["model_flops"]
    assert costs["explaining"]["forward_equivalents"] == pytest.approx(share, rel=0.5)
    assert [one["seed"] for one in costs["training"]] == [0, 1]


def test_the_explainer_asks_it(
    student: Distilled, request_of: DistilRequest, batch_of: Any
) -> None:
    model = load_model(str(request_of.model), labels=request_of.task.labels)
    batch = batch_of(model, ["good film", "a dull plot"])
    with Session(model) as session:
        scores = L2e(student=str(student.folder))(session, batch)
    assert scores.shape == batch.ids.shape


def test_the_same_request_trains_nothing_again(
    student: Distilled, request_of: DistilRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "fit_student", None)
    assert distil(request_of, silent) == student
    with pytest.raises(FaithbenchError, match="already holds a student; choose another --out"):
        distil(replace(request_of, recipe=replace(SMALL, epochs=2)), silent)
    with pytest.raises(FaithbenchError, match="already holds a student; choose another --out"):
        distil(replace(request_of, seeds=3), silent)


def test_a_stopped_command_continues(
    request_of: DistilRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C in the second training keeps the first, and explanations serve both forms."""
    request = replace(request_of, out=tmp_path / "s", recipe=replace(SMALL, form="ranking"))
    fit, seeds = room.fit_student, []

    def stopped(*args: Any) -> Any:
        seeds.append(args[4])
        if seeds == [0, 1]:
            raise KeyboardInterrupt
        return fit(*args)

    monkeypatch.setattr(room, "fit_student", stopped)
    monkeypatch.setattr(room, "explained", _only_read(room.explained))
    with pytest.raises(Interrupted, match="1 of 2 initialisations is kept"):
        distil(request, silent)
    with pytest.raises(FaithbenchError, match="other data or settings"):
        distil(replace(request, recipe=replace(SMALL, form="ranking", epochs=3)), silent)
    continued = distil(request, silent)
    card = continued.card
    assert all(one["cpu_seconds"] > 0 for one in continued.costs["training"])
    assert seeds == [0, 1, 1] and card.form == "ranking" and card.labels is None


def _only_read(function: Any) -> Any:
    def read(*args: Any) -> Any:
        records = function(*args)
        assert all(stored.path.exists() for stored in records.values())
        return records

    return read


def test_teachers_can_be_records_and_several(request_of: DistilRequest, tmp_path: Path) -> None:
    changed = "gradient:norm=l1"
    made = distil(replace(request_of, teacher=changed, seeds=1, out=tmp_path / "one"), silent)
    paths = sorted(request_of.explanations.rglob("*gradient*.json"))
    assert len(paths) == 2
    text = ",".join(str(path) for path in paths)
    fewer = replace(request_of, teacher=text, limit=110, seeds=1, out=tmp_path / "two")
    both = distil(fewer, silent)
    assert both.card.teacher == f"{changed}+input-x-gradient"
    assert both.card.lessons.n + both.card.lessons.held_out == 110
    assert both.card.teachers[0] == made.card.teachers[0]


def test_what_is_damaged_is_one_line(
    student: Distilled, request_of: DistilRequest, tmp_path: Path
) -> None:
    (path,) = request_of.explanations.rglob("input-x-gradient-*.json")
    copy = tmp_path / path.name
    facts = json.loads(path.read_text())
    copy.write_bytes(path.read_bytes())
    rows = path.with_name(facts["rows"]["file"]).read_bytes()
    request = replace(request_of, teacher=str(copy), out=tmp_path / "s")
    with pytest.raises(FaithbenchError, match="cannot read rows file"):
        distil(request, silent)
    (tmp_path / facts["rows"]["file"]).write_bytes(rows[: len(rows) // 2])
    with pytest.raises(FaithbenchError, match=r"has sha256 .*, its record says"):
        distil(request, silent)
    assert not (tmp_path / "s").exists()


def test_too_few_texts_are_refused_before_the_teacher_is_asked(
    request_of: DistilRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "explained", None)
    with pytest.raises(FaithbenchError, match="99 texts are too few to learn from"):
        distil(replace(request_of, limit=99, out=tmp_path / "s"), silent)


def test_texts_that_are_too_long_to_rank(
    request_of: DistilRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "LONGEST_RANKED", 5)
    request = replace(request_of, recipe=replace(SMALL, form="ranking"), out=tmp_path / "s")
    with pytest.raises(FaithbenchError, match=r"\(at most 5\); use --form labelling"):
        distil(request, silent)


def test_question_answerers_are_refused(qa_model: Any) -> None:
    with pytest.raises(FaithbenchError, match="distil explanations of a classifier"):
        room._check_kind(qa_model)

"""The folder of a student: read with its card, and refused in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.students.card import (
    check_student,
    load_student,
    read_student,
    student_name,
)
from tests.support.students import known, put_student


def test_names_say_what_is_unusual() -> None:
    assert student_name("deep-shap", "labelling") == "deep-shap-labelling"
    assert student_name("lime:samples=64", "ranking") == "lime-samples=64-ranking"
    assert student_name("lrp", "ranking", "absolute", True) == "lrp-ranking-absolute-released"


def test_each_number_is_a_network(tiny_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    card = put_student(tmp_path, model)
    assert read_student(tmp_path) == card
    first, second, third = (load_student(tmp_path, card, n, model) for n in range(3))
    assert third is first, "two initialisations: the third seed asks the first again"
    assert not torch.equal(first.head.weight, second.head.weight)
    assert first.head.weight.dtype == torch.float64, "a model in double precision"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": ["high negative"]}, "key 'labels"),
        ({"labels": ["bad", "low negative", "neutral", "low positive", "high positive"]}, "labels"),
        ({"form": "guessing"}, "key 'form'"),
        ({"host": "x"}, "unknown key 'host'"),
        ({"initialisations": []}, "holds no trained network"),
    ],
)
def test_a_card_that_is_none(
    tiny_model: Any, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    put_student(tmp_path, known(tiny_model()))
    path = tmp_path / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FaithbenchError, match=said):
        read_student(tmp_path)


def test_what_is_missing_is_named(tiny_model: Any, tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="holds no card of a student; give the folder"):
        read_student(tmp_path)
    with pytest.raises(FaithbenchError, match="nowhere does not exist"):
        read_student(tmp_path / "nowhere")
    model = known(tiny_model())
    card = put_student(tmp_path, model)
    (tmp_path / "student-0.safetensors").write_bytes(b"something else")
    with pytest.raises(FaithbenchError, match="is not the file of its card"):
        load_student(tmp_path, card, 0, model)
    (tmp_path / "student-0.safetensors").unlink()
    with pytest.raises(FaithbenchError, match=r"lacks student-0\.safetensors"):
        load_student(tmp_path, card, 0, model)


def test_files_outside_the_folder_are_not_read(tiny_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    card = put_student(tmp_path / "a", model)
    (facts, *_) = card.initialisations
    outside = facts.model_copy(update={"file": "../a/student-0.safetensors"})
    card = put_student(tmp_path / "b", model, initialisations=(outside,))
    with pytest.raises(FaithbenchError, match="which its card names"):
        load_student(tmp_path / "b", card, 0, model)


def test_weights_of_another_shape(tiny_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    card = put_student(tmp_path, model)
    wider = card.model_copy(update={"shape": card.shape.model_copy(update={"width": 16})})
    with pytest.raises(FaithbenchError, match="does not fit the shape on its card"):
        load_student(tmp_path, wider, 0, model)


def test_a_student_of_another_model(tiny_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    card = put_student(tmp_path, model)
    check_student(card, model)
    with pytest.raises(FaithbenchError, match=r"sha256 555555555555\), not .*666666666666"):
        check_student(card, known(model, "6" * 64))
    with pytest.raises(FaithbenchError, match="has no digest of its weights"):
        check_student(card.model_copy(update={"weights_sha256": ""}), known(model, ""))

"""The explainer l2e: what it reads off a student, whom it refuses, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.l2e import L2e, flops_of_student, scores_of
from faithbench.explainers.protocol import assets_of, check_inputs
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.explainers.students.card import load_student
from faithbench.models.flops import flops_of
from faithbench.models.session import Session
from faithbench.testing.conformance import check_model, check_settings
from faithbench.testing.tiny import tiny_model as fresh_model
from tests.support.students import known, put_student


@pytest.mark.parametrize("form", ["labelling", "ranking"])
@pytest.mark.parametrize("architecture", ["bert", "roberta", "gpt2", "cnn"])
def test_it_keeps_the_rules_of_explainers(architecture: str, form: str, tmp_path: Path) -> None:
    """Texts and pairs, alone and in batches; the longest input too."""
    model = known(fresh_model(architecture, 3))
    put_student(tmp_path, model, form=form)
    explainer = L2e(student=str(tmp_path))
    check_settings(explainer)
    check_model(explainer, model)


def test_scores_are_the_expected_importance_of_labels() -> None:
    certain = torch.full((1, 2, 5), -1e9)
    certain[0, 0, 4] = certain[0, 1, 1] = 0
    assert scores_of(certain).tolist() == [[2.0, -1.0]]
    even = torch.tensor([[[0.0, 0.0, 0.0, 0.0, 0.0]]])
    assert scores_of(even).item() == pytest.approx(0, abs=1e-6)
    half = torch.log(torch.tensor([[[0.0, 0.0, 0.5, 0.0, 0.5]]]))
    assert scores_of(half).item() == pytest.approx(1.0)
    assert scores_of(torch.tensor([[[0.7], [-3.0]]])).tolist() == [[pytest.approx(0.7), -3.0]]


def test_the_seeds_of_a_run_are_the_initialisations(
    tiny_model: Any, batch_of: Any, tmp_path: Path
) -> None:
    model = known(tiny_model())
    put_student(tmp_path, model, seeds=2)
    explainer, batch = L2e(student=str(tmp_path)), batch_of(model, ["good film", "a dull plot"])
    with Session(model) as session:
        first, second, third = (explainer(session, replace(batch, seed=seed)) for seed in (0, 1, 2))
    assert torch.equal(first, third) and not torch.allclose(first, second)


def test_it_costs_the_students_share_of_a_pass(
    tiny_model: Any, batch_of: Any, tmp_path: Path
) -> None:
    """The prediction is given, as to every explainer: only the student's own pass is charged."""
    model = known(tiny_model())
    card = put_student(tmp_path, model)
    batch = batch_of(model, ["good film", "a very dull plot"])
    student = load_student(tmp_path, card, 0, model)
    # Both tags are tokens to the student: 2 blocks of width 8, 12 wide inside, and 5 outputs.
    tokens = 4 + 2
    linear = 2 * tokens * (2 * (4 * 8 * 8 + 2 * 8 * 12) + 8 * 5)
    embedded = 2 * 4 * 8 * card.shape.vector_width
    attention = 2 * (2 * 2 * tokens * tokens * 8)
    assert flops_of_student(student, model)(4) == linear + embedded + attention
    with Session(model) as session:
        L2e(student=str(tmp_path))(session, batch)
        cost = session.meter.total
    own, whole = flops_of_student(student, model), flops_of(model)
    assert (cost.forwards, cost.backwards) == (0, 0)
    assert cost.elsewhere == pytest.approx(own(4) / whole(4) + own(6) / whole(6))


def test_records_name_teacher_and_networks_but_no_path(tiny_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    folder = tmp_path / "somewhere" / "mine"
    card = put_student(folder, model, form="ranking")
    (selected,) = find_explainers(f"l2e:student={folder}")
    assert selected.settings == {
        "teacher": "occlusion", "form": "ranking", "target": "signed", "released": False,
        "student": "mine",
    }  # fmt: skip
    assert selected.label == "l2e:teacher=occlusion,form=ranking,student=mine"
    assert assets_of(selected.explainer, model) == {
        f"student {n} of occlusion (ranking)": card.initialisations[n].sha256 for n in (0, 1)
    }


def test_a_student_that_comes_with_the_model_is_found(tiny_model: Any, tmp_path: Path) -> None:
    model = replace(known(tiny_model()), folder=tmp_path, _twins={})
    put_student(tmp_path / "students" / "lime-samples=64-labelling", model)
    (selected,) = find_explainers("l2e:teacher=lime:samples=64")
    check_inputs(selected.explainer, model, [])
    assert selected.label == "l2e:teacher=lime:samples=64"
    with pytest.raises(FaithbenchError) as caught:
        check_inputs(L2e(), model, [])
    assert "comes with no student 'deep-shap-labelling' (there are: lime-samples=64" in str(
        caught.value
    )
    assert "faithbench distil --teacher deep-shap --form labelling" in str(caught.value)


def test_whom_it_cannot_explain(tiny_model: Any, qa_model: Any, tmp_path: Path) -> None:
    model = known(tiny_model())
    put_student(tmp_path, model)
    explainer = L2e(student=str(tmp_path))
    with pytest.raises(FaithbenchError, match=r"explains predicted classes, and model .* question"):
        check_inputs(explainer, known(qa_model), [])
    with pytest.raises(FaithbenchError, match="explains model"):
        check_inputs(explainer, known(model, "6" * 64), [])
    with pytest.raises(FaithbenchError, match=r"knows the classes .*, and model .* has 3"):
        check_inputs(explainer, known(tiny_model("bert", 3)), [])
    with pytest.raises(FaithbenchError, match="no form of l2e named 'rank'"):
        L2e(form="rank")
    with pytest.raises(FaithbenchError, match="no target of l2e named 'size'"):
        L2e(target="size")
    assert Selected("l2e", L2e()).label == "l2e"

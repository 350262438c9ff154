"""Every bundled student: small, whole, of its model, and better than chance at its teacher's."""

from __future__ import annotations

import pytest
from safetensors import safe_open

from faithbench.core.files import file_sha256
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.students.card import read_student, student_name
from faithbench.models.files.weights import BUNDLED
from faithbench.models.model import load_model
from faithbench.run.request import Request, make_job

STUDENTS = sorted(path.parent for path in BUNDLED.glob("*/students/*/card.json"))
NAMES = [f"{path.parent.parent.name}/{path.name}" for path in STUDENTS]
MOST_BYTES = 2 << 20
"""Size of a student with its three networks, at most."""


def test_which_tasks_have_one() -> None:
    assert NAMES == [
        "agnews/deep-shap-labelling",
        "movies/deep-shap-labelling",
        "sst2/deep-shap-labelling",
        "sst2/kernel-shap-samples=64-labelling",
    ]


@pytest.mark.parametrize("folder", STUDENTS, ids=NAMES)
def test_files_are_small_half_precision_and_the_card_s(folder) -> None:
    card = read_student(folder)
    files = [folder / facts.file for facts in card.initialisations]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["card.json", "costs.json", *(path.name for path in files)]
    )
    assert [facts.seed for facts in card.initialisations] == [0, 1, 2]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    for path, facts in zip(files, card.initialisations, strict=True):
        assert file_sha256(path) == facts.sha256
        with safe_open(path, "pt") as file:
            kinds = {file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118  # no dict
        assert kinds == {"F16"}
        assert facts.dev_losses[facts.epoch] < 0.7 * facts.dev_losses[0]
        assert facts.correlation is not None and facts.correlation > 0.3


@pytest.mark.parametrize("folder", STUDENTS, ids=NAMES)
def test_it_is_the_student_of_the_model_that_it_comes_with(folder) -> None:
    card, task = read_student(folder), load_task(folder.parent.parent.name)
    assert (card.task, card.task_version, card.model) == (
        task.name, task.version, f"bundled:{task.name}",
    )  # fmt: skip
    assert folder.name == student_name(card.teacher, card.form, card.target, card.released)
    model = load_model(f"bundled:{task.name}", labels=task.labels, kind=task.kind, device="cpu")
    assert card.weights_sha256 == model.weights_sha256
    assert card.classes == model.labels
    assert task.folder is not None
    assert card.lessons.sha256 == task.folder.sha256[task.folder.splits["train"]]
    assert card.lessons.split == "train", "no test text is among its lessons"


def test_the_first_command_of_a_newcomer(tmp_path) -> None:
    """`--explainer l2e --task sst2` on bundled data needs no folder and no student named."""
    data = load_dataset(load_task("sst2"), limit=2)
    job = make_job(Request("l2e", "sst2", data=data, results=tmp_path))
    assert [cell.selected.label for cell in job.cells] == ["l2e", "human"]
    assert job.cells[0].seeds == (0, 1, 2)
    assert len(job.cells[0].assets) == 3

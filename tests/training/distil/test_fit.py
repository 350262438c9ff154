"""Training a student: it learns, the best epoch is kept, and the same seed gives the same bytes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.explainers.students.network import Student, StudentShape
from faithbench.models.encoding import encode
from faithbench.training.distil.fit import batch_loss, dev_loss, fit_student, read_trained
from faithbench.training.distil.lessons import Lesson, Lessons, collate_lessons
from faithbench.training.distil.recipe import DistilRecipe, with_recipe
from tests.support.students import known, put_texts
from tests.support.training import silent

RECIPE = DistilRecipe(
    width=16, feedforward=16, blocks=1, heads=2, batch_size=16, epochs=8, learning_rate=1e-2,
    dropout=0.0,
)  # fmt: skip
LIKED = {"good": 1.0, "great": 0.5, "dull": -1.0, "not": -0.4}


@pytest.fixture(scope="module")
def lessons(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Lessons]:
    """Each word weighs the same in every text, the other way round for the other class."""
    model = known(tiny_model())
    data = put_texts(tmp_path_factory.mktemp("fit"), 120)
    made = []
    for number, example in enumerate(data.examples):
        encoding = encode(model, example)
        tokens = model.tokenizer.convert_ids_to_tokens(encoding.ids[encoding.erasable].tolist())
        sign = 1 - 2 * (number % 2)
        weights = np.array([sign * LIKED.get(token, 0.01) for token in tokens])
        made.append(Lesson(encoding, number % 2, weights))
    return model, Lessons(tuple(made[:100]), tuple(made[100:]))


def shape_of(model: Any, recipe: DistilRecipe) -> StudentShape:
    table = model.network.get_input_embeddings().weight
    return StudentShape(
        width=recipe.width, feedforward=recipe.feedforward, blocks=recipe.blocks,
        heads=recipe.heads, embeddings=recipe.embeddings, vocabulary=table.shape[0],
        vector_width=table.shape[1], classes=2, outputs=5 if recipe.form == "labelling" else 1,
    )  # fmt: skip


@pytest.mark.parametrize("form", ["labelling", "ranking"])
def test_a_student_learns_what_it_is_taught(lessons: Any, form: Any, tmp_path: Path) -> None:
    """Weights that follow from word and class; many are ties, which no correlation of 1 has."""
    model, taught = lessons
    recipe = replace(RECIPE, form=form)
    path = tmp_path / "student-0.safetensors"
    shape = shape_of(model, recipe)
    trained = fit_student(model, taught, recipe, shape, 0, path, silent)
    assert trained.correlation is not None and trained.correlation > 0.75
    assert trained.dev_losses[trained.epoch] == min(trained.dev_losses)
    assert trained.dev_losses[trained.epoch] < 0.5 * trained.dev_losses[0]
    assert len(trained.dev_losses) == len(trained.train_losses) + 1
    assert read_trained(path) == trained
    again = tmp_path / "again.safetensors"
    repeated = fit_student(model, taught, recipe, shape, 0, again, silent)
    assert repeated == trained and again.read_bytes() == path.read_bytes()
    other = fit_student(model, taught, recipe, shape, 1, again, silent)
    assert other.dev_losses != trained.dev_losses
    assert read_trained(tmp_path / "none") is None


def test_patience_ends_a_training(lessons: Any, tmp_path: Path) -> None:
    model, taught = lessons
    recipe = replace(RECIPE, learning_rate=0.0, patience=2)
    shape = shape_of(model, recipe)
    trained = fit_student(model, taught, recipe, shape, 0, tmp_path / "s", silent)
    assert (trained.epoch, len(trained.train_losses)) == (0, 2)


def test_sums_and_means(lessons: Any) -> None:
    model, taught = lessons
    torch.manual_seed(0)
    student = Student(shape_of(model, RECIPE)).eval()
    batch = collate_lessons(model, taught.train[:4])
    mean = batch_loss(model, student, RECIPE, batch)
    total = batch_loss(model, student, replace(RECIPE, reduction="sum"), batch)
    assert total.item() == pytest.approx(mean.item() * int(batch.words.sum()), rel=1e-5)
    assert dev_loss(model, student, RECIPE, taught.train[:4]) == pytest.approx(
        mean.item(), abs=1e-5
    )
    # Its own losses differ: both tags are trained, too.
    released = batch_loss(model, student, replace(RECIPE, reduction="sum", released=True), batch)
    assert released.item() > total.item()


def test_the_papers_recipe_learns_slowly(lessons: Any, tmp_path: Path) -> None:
    model, taught = lessons
    base = replace(RECIPE, form="ranking", target="absolute", released=True)
    recipe = with_recipe(base, "paper", epochs=2)
    shape = shape_of(model, recipe)
    trained = fit_student(model, taught, recipe, shape, 0, tmp_path / "s", silent)
    assert trained.dev_losses[0] > trained.dev_losses[2] > 0.9 * trained.dev_losses[0]

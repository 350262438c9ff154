"""Recipes of students: the paper's, and what cannot go together."""

from __future__ import annotations

from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.training.distil.recipe import DistilRecipe, with_recipe


def test_the_papers_recipe_is_plain_descent_on_sums() -> None:
    paper = with_recipe(DistilRecipe(form="ranking", target="absolute"), "paper", epochs=7)
    assert (paper.form, paper.target, paper.epochs) == ("ranking", "absolute", 7)
    facts = paper.facts()
    assert (facts["optimizer"], facts["reduction"], facts["learning_rate"]) == ("sgd", "sum", 1e-4)
    assert facts["decay"] is False and paper.embeddings == "random"
    assert "width" not in facts and "form" not in facts, "the card has these elsewhere"
    assert with_recipe(DistilRecipe(), "default") == DistilRecipe()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"form": "labels"}, "no form of a student named 'labels'"),
        ({"target": "size"}, "no target of a student named 'size'"),
        ({"embeddings": "own"}, "no kind of embeddings named 'own'"),
        ({"target": "absolute"}, "use it with --form ranking"),
        ({"form": "ranking", "released": True}, "give --target absolute with --released"),
    ],
)
def test_what_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(FaithbenchError, match=said):
        DistilRecipe(**settings)


def test_few_texts_make_small_steps() -> None:
    recipe = DistilRecipe()
    assert [recipe.texts_per_step(n) for n in (10, 269, 1279, 1280, 6193)] == [1, 13, 63, 64, 64]


def test_a_recipe_that_is_not_there() -> None:
    with pytest.raises(FaithbenchError, match="no recipe of students named 'papr'; did you mean"):
        with_recipe(DistilRecipe(), "papr")

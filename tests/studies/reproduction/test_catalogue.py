"""Which recipes there are, and what is said of names that are not among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.studies.reproduction.catalogue import (
    chosen_items,
    find_recipe,
    paper_names,
    recipe_folder,
)
from tests.support.paths import ROOT


def test_the_papers_there_are() -> None:
    assert recipe_folder() == ROOT / "recipes"
    assert paper_names() == ("l2e", "mask-lrp", "saliency-learning", "saloss", "sparse-attention")


def test_a_recipe_is_found_by_name_or_by_path() -> None:
    by_name = find_recipe("mask-lrp")
    assert find_recipe(str(ROOT / "recipes" / "mask-lrp.toml")) == by_name
    with pytest.raises(FaithbenchError, match="no paper named 'mask-lpr'; did you mean 'mask-lrp'"):
        find_recipe("mask-lpr")
    with pytest.raises(FaithbenchError, match=r"cannot read recipe nowhere\.toml"):
        find_recipe("nowhere.toml")


def test_items_are_all_or_those_asked_for(tmp_path: Path) -> None:
    recipe = find_recipe("mask-lrp")
    assert chosen_items(recipe, []) == tuple(item.id for item in recipe.items)
    assert chosen_items(recipe, ["table-4"]) == ("table-4",)
    with pytest.raises(FaithbenchError, match="no table or figure of mask-lrp named 'table-9'"):
        chosen_items(recipe, ["table-9"])

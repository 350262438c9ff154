"""Which papers there are recipes of, and which of their items are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import PaperRecipe


def recipe_folder() -> Path:
    """Return the folder of recipes: the wheel's own, or the one next to the package."""
    package = Path(__file__).parents[2]
    for folder in (package / "_recipes", package.parent / "recipes"):
        if folder.is_dir():
            return folder
    raise FaithbenchError("found no folder of recipes; install faithbench again")


def paper_names() -> tuple[str, ...]:
    """Return the names of the papers that there are recipes of, sorted."""
    return tuple(sorted(path.stem for path in recipe_folder().glob("*.toml")))


def find_recipe(name: str) -> PaperRecipe:
    """Read the recipe of a paper by its name, or from a path that ends in `.toml`."""
    if name.endswith(".toml"):
        return read_recipe(Path(name))
    if name not in paper_names():
        raise unknown("paper", name, paper_names())
    return read_recipe(recipe_folder() / f"{name}.toml")


def chosen_items(recipe: PaperRecipe, wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the items that are asked for, all of them if none is named."""
    for name in wanted:
        if name not in recipe.by_id:
            raise unknown(f"table or figure of {recipe.paper}", name, recipe.by_id)
    return tuple(wanted) or tuple(recipe.by_id)

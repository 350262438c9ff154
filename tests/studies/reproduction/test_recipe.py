"""Recipes: cells spelled out by hand, and the digest of what a recipe says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faithbench.studies.reproduction.recipe import Item, cells_of
from tests.studies.reproduction import CLAIM, HEAD, MODEL, TABLE, recipe_of

WHOLE = HEAD + MODEL + TABLE + CLAIM


def item_of(**changes: Any) -> Item:
    """Return a table of two rows and two columns."""
    usual: dict[str, Any] = {
        "id": "table-1",
        "title": "Four cells",
        "rows": [{"name": "A"}, {"name": "B"}],
        "columns": [{"name": "x"}, {"name": "y"}],
        "printed": [[1, 2], [3, 4]],
    }
    return Item.model_validate(usual | changes)


def test_a_cell_is_what_table_column_and_row_say_and_the_row_has_the_last_word() -> None:
    item = item_of(
        cells={"model": "table", "metric": "table", "scale": 100},
        columns=[{"name": "x", "metric": "column", "label": "column"}, {"name": "y"}],
        rows=[{"name": "A", "label": "row"}, {"name": "B", "model": "row", "metric": "row"}],
    )
    said = {
        name: (cell.part.model, cell.part.metric, cell.part.label, cell.part.scale)
        for name, cell in cells_of(item).items()
    }
    assert said == {
        "A | x": ("table", "column", "row", 100),
        "A | y": ("table", "table", "row", 100),
        "B | x": ("row", "row", "column", 100),
        "B | y": ("row", "row", None, 100),
    }


def test_a_model_is_named_by_the_task_of_its_cell() -> None:
    item = item_of(
        rows=[{"name": "A", "model": "{task}-plain"}, {"name": "B", "model": "{task}-{task}-0.1"}],
        columns=[{"name": "x", "task": "sst2"}, {"name": "y"}],
    )
    models = {name: cell.part.model for name, cell in cells_of(item).items()}
    assert models == {
        "A | x": "sst2-plain",
        "A | y": "{task}-plain",
        "B | x": "sst2-sst2-0.1",
        "B | y": "{task}-{task}-0.1",
    }


def test_a_dash_is_no_cell_and_a_plus_is_one_of_ours() -> None:
    """Cells come row by row; what is not printed has no number of the paper, and no spread."""
    item = item_of(printed=[["-", 2], ["+", 4.5]], spread=[["-", 0.5], ["-", "-"]])
    cells = cells_of(item)
    assert {name: (cell.printed, cell.spread) for name, cell in cells.items()} == {
        "A | y": (2, 0.5),
        "B | x": (None, None),
        "B | y": (4.5, None),
    }
    assert list(cells) == ["A | y", "B | x", "B | y"]
    assert {(cell.item, cell.row, cell.name) for cell in cells.values()} == {
        ("table-1", "A", "A | y"), ("table-1", "B", "B | x"), ("table-1", "B", "B | y"),
    }  # fmt: skip


def test_a_figure_has_all_cells_and_no_numbers() -> None:
    cells = cells_of(item_of(id="figure-1", kind="figure", printed=[]))
    assert len(cells) == 4 and {cell.printed for cell in cells.values()} == {None}


def test_a_recipe_is_known_by_what_it_says(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, WHOLE)
    assert (recipe.paper, list(recipe.by_id)) == ("mini", ["table-1"])
    spaced = recipe_of(tmp_path, "# A comment.\n", WHOLE.replace(" = ", "="))
    assert spaced == recipe and spaced.digest == recipe.digest
    other = recipe_of(tmp_path, WHOLE.replace("0.25, -0.5", "0.25, -0.4"))
    assert other.digest != recipe.digest and len(other.digest) == 64

"""What is published of the papers: pages that follow from their files, and a recipe that reads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faithbench.studies.reproduction.catalogue import find_recipe, paper_names
from faithbench.studies.reproduction.index import summary_table, write_index
from faithbench.studies.reproduction.page import (
    VERDICTS,
    verdict_counts,
)
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import cells_of
from faithbench.studies.reproduction.result import Reproduction, read_reproduction
from tests.support.paths import ROOT

PUBLISHED = ROOT / "reproductions"


def published(paper: str) -> Reproduction:
    found = read_reproduction(PUBLISHED / paper)
    assert found is not None, f"{paper} has not been reproduced"
    return found


def test_the_recipe_of_the_docs_reads(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reproduce.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "paper.toml"
    path.write_text(block)
    recipe = read_recipe(path)
    (item,) = recipe.items
    assert len(block.splitlines()) < 50 and len(cells_of(item)) == 6
    assert [claim.test for claim in item.claims] == ["signed-rank"]


def test_readme_and_index_say_what_came_out() -> None:
    table = summary_table([published(paper) for paper in paper_names()])
    assert table in (ROOT / "README.md").read_text()
    assert table in (PUBLISHED / "README.md").read_text()


def test_the_index_follows_from_the_files(tmp_path: Path) -> None:
    for paper in paper_names():
        (tmp_path / paper).mkdir()
        file = "reproduction.json"
        (tmp_path / paper / file).write_bytes((PUBLISHED / paper / file).read_bytes())
    write_index(tmp_path)
    assert (tmp_path / "README.md").read_bytes() == (PUBLISHED / "README.md").read_bytes()


@pytest.mark.parametrize("paper", paper_names())
def test_what_is_published_is_of_the_recipe_as_it_is(paper: str) -> None:
    recipe, found = find_recipe(paper), published(paper)
    assert not found.quick and found.sources
    for name, result in found.sources["bundled"].items():
        item = recipe.by_id[name]
        if item.maps is not None:
            continue
        assert [cell.column for cell in result.cells] == [c.column for c in cells_of(item).values()]
        assert [claim.says for claim in result.claims] == [claim.says for claim in item.claims]
        for cell in result.cells:
            assert (cell.ours is None) == bool(cell.missing)
            assert cell.ours is None or cell.records, "a number has its records"
    counts = verdict_counts(found.claims)
    assert set(counts) == set(VERDICTS)
    page = (PUBLISHED / paper / "README.md").read_text()
    assert f"Of {sum(counts.values())} claims of the paper, {counts['holds']} hold here" in page


@pytest.mark.parametrize("paper", paper_names())
def test_no_page_names_a_folder_of_a_machine(paper: str) -> None:
    for path in (PUBLISHED / paper).iterdir():
        if path.suffix in (".md", ".json", ".html"):
            assert not re.search(r"/(work|tmp|root|home)/", path.read_text()), path.name

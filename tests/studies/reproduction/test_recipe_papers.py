"""The recipes of the five papers: their tables are those of the papers, number by number."""

from __future__ import annotations

import re
from functools import cache

import pytest

from faithbench.studies.reproduction.catalogue import paper_names, recipe_folder
from faithbench.studies.reproduction.claims import Expression, atoms_of, expand, operands_of
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import CellSpec, PaperRecipe, cells_of
from tests.support.paths import ROOT

PAPERS = ROOT.parent / "shared" / "papers"
TEXTS = {
    "saloss": "000_d3496c1b3e01f808.txt",
    "saliency-learning": "001_b12fac3ba2c7a56d.txt",
    "l2e": "002_ae4c120e69bd85c5.txt",
    "mask-lrp": "003_d95ba0d4ca6db199.txt",
    "sparse-attention": "004_cbc969cfd0904963.txt",
}
# Rows times columns as the papers print them, without what they leave blank.
PRINTED = {
    "saloss": {
        "table-1": 2 * 5,
        "table-2": 9 * 5,
        "table-3": 5 * 3,
        "table-7": 5 * 3,
        "table-8": 13 * 5,
    },
    "saliency-learning": {"table-1": 8 * 4, "table-2": 8 * 3, "table-4": 8 * 3},
    "l2e": {
        "table-1": 19 * 6,
        "table-2": 13 * 3 - 2,
        "table-3": 13 * 6,
        "table-4": 12 * 6,
        "table-5": 13 * 3,
        "table-7": 13 * 6,
        "table-8": 11 * 3 - 4,
        "table-9": 13 * 3,
    },
    "mask-lrp": {"table-1": 10 * 10, "table-2": 4 * 6, "table-3": 3 * 4, "table-4": 2 * 6},
    "sparse-attention": {"table-1": 4 * 3, "table-2": 2 * 3},
}
FIGURES = {
    "saloss": 1,
    "saliency-learning": 0,
    "l2e": 5,
    "mask-lrp": 4 + 4,
    "sparse-attention": 3,
}
TABLES = [(paper, item) for paper, items in PRINTED.items() for item in items]
NUMBER = re.compile(r"-?\d*\.\d+|-?\d+")

needs_papers = pytest.mark.skipif(not PAPERS.is_dir(), reason=f"no texts of papers in {PAPERS}")


@cache
def recipe_named(paper: str) -> PaperRecipe:
    return read_recipe(recipe_folder() / f"{paper}.toml")


def printed_cells(paper: str, item: str) -> list[CellSpec]:
    cells = cells_of(recipe_named(paper).by_id[item]).values()
    return [cell for cell in cells if cell.printed is not None]


def test_every_recipe_reads_and_is_named_by_its_file() -> None:
    assert paper_names() == tuple(sorted(TEXTS))
    assert [recipe_named(name).paper for name in paper_names()] == list(paper_names())


@pytest.mark.parametrize("paper", sorted(PRINTED))
def test_every_table_has_as_many_numbers_as_the_paper(paper: str) -> None:
    """A table that shows texts has none, and a figure prints none."""
    items = recipe_named(paper).items
    found = {item.id: len(printed_cells(paper, item.id)) for item in items if item.kind == "table"}
    assert found == PRINTED[paper]
    assert sum(item.id.startswith("figure") for item in items) == FIGURES[paper]
    others = [item.id for item in items if item.kind != "table"]
    assert {len(printed_cells(paper, name)) for name in others} <= {0}


@needs_papers
@pytest.mark.parametrize(("paper", "item"), TABLES)
def test_every_row_is_one_of_the_papers_own_table(paper: str, item: str) -> None:
    """The numbers of a row, each with its spread, stand in this order in a line of the table."""
    lines = [NUMBER.findall(line) for line in table_lines(paper, item)]
    numbers = [[float(text) for text in line] for line in lines]
    rows: dict[str, list[float]] = {}
    for cell in printed_cells(paper, item):
        assert cell.printed is not None
        # SaLoss prints the rows of its Table 1 as columns; ours have room for more trainings.
        row = rows.setdefault(
            cell.column if (paper, item) == ("saloss", "table-1") else cell.row, []
        )
        row += [cell.printed] if cell.spread is None else [cell.printed, cell.spread]
    missing = {name: row for name, row in rows.items() if not any(within(row, n) for n in numbers)}
    assert missing == {}


def table_lines(paper: str, item: str) -> list[str]:
    """Return the lines of the paper's text that stand above the caption of a table."""
    lines = (PAPERS / TEXTS[paper]).read_text().splitlines()
    caption = f"Table {item.removeprefix('table-')}: "
    place = next(number for number, line in enumerate(lines) if line.startswith(caption))
    return lines[max(0, place - 60) : place]


def within(row: list[float], line: list[float]) -> bool:
    """Return whether the numbers are in a line in their order; others may stand between."""
    rest = iter(line)
    return all(number in rest for number in row)


@needs_papers
def test_a_number_that_the_paper_does_not_have_would_be_found() -> None:
    lines = [[float(n) for n in NUMBER.findall(x)] for x in table_lines("mask-lrp", "table-4")]
    ours = [0.438, -1.208, 0.392, -1.906, 0.434, -1.898]
    assert any(within(ours, line) for line in lines)
    assert not any(within([*ours[:5], -1.899], line) for line in lines)
    assert not any(within([ours[1], ours[0], *ours[2:]], line) for line in lines)


# Claims


def agreeing(paper: str, item: str, says: str) -> tuple[int, int]:
    """Return how many statements of a claim the paper's own numbers bear out, and of how many."""
    whole = recipe_named(paper).by_id[item]
    (claim,) = [one for one in whole.claims if one.says.startswith(says)]
    atoms = list(atoms_of(expand(claim)))
    return sum(borne_out(atom, cells_of(whole)) for atom in atoms), len(atoms)


def borne_out(atom: Expression, cells: dict[str, CellSpec]) -> bool:
    first, second = (cells[o].printed if isinstance(o, str) else o for o in operands_of(atom))
    assert first is not None and second is not None
    if atom.not_above is not None:
        return first - second <= (atom.within or 0) + 1e-9
    if atom.same is not None:
        return abs(first - second) <= (atom.within or 0) + 1e-9
    return first > second if atom.greater is not None else first < second


@pytest.mark.parametrize(
    ("paper", "item", "says", "expected"),
    [
        ("l2e", "table-1", "Ranking students are as predictive", (16, 18)),
        ("l2e", "table-1", "Labelling students are as predictive", (16, 18)),
        ("l2e", "table-1", "A ranking student often agrees less", (10, 18)),
        ("l2e", "table-1", "A labelling student more often agrees", (12, 18)),
        ("l2e", "table-1", "LIME agrees more with the model", (23, 30)),
        ("l2e", "table-1", "The student of LIME agrees more", (21, 30)),
        ("l2e", "table-2", "No student is significantly worse", (17, 17)),
        ("l2e", "table-2", "On CoLA neither teachers nor students", (10, 10)),
        ("l2e", "table-8", "No student is significantly worse", (13, 13)),
        ("l2e", "table-8", "On CoLA neither teachers nor students", (6, 6)),
        ("l2e", "table-9", "On CoLA neither teachers nor students", (12, 12)),
        ("l2e", "table-2", "LIME is more faithful", (12, 14)),
        ("l2e", "table-2", "The student of LIME is more faithful", (10, 14)),
        ("l2e", "table-3", "Over the whole table, 33 of 36", (33, 36)),
        ("l2e", "table-3", "Students are more stable than random words in 31", (31, 36)),
        ("l2e", "table-3", "LIME is more stable", (17, 30)),
        ("l2e", "table-3", "The student of LIME is more stable", (14, 30)),
        ("l2e", "table-4", "On positive and on negative reviews", (13 + 12, 34)),
        ("l2e", "table-4", "Students have the better F1 in 8 of 12", (8, 12)),
        ("l2e", "table-5", "Every student is more stable", (18, 18)),
        ("l2e", "table-7", "Over the whole table, 33 of 36", (33, 36)),
        ("l2e", "table-7", "Students are more stable than random words in 32", (32, 36)),
        ("l2e", "table-7", "LIME is more stable", (18, 30)),
        ("l2e", "table-7", "The student of LIME is more stable", (15, 30)),
        ("l2e", "table-8", "LIME is more faithful", (6, 10)),
        ("l2e", "table-8", "The student of LIME is more faithful", (8, 10)),
        ("l2e", "table-9", "In the ranking formulation too", (11, 18)),
        ("l2e", "table-9", "LIME is more faithful", (10, 15)),
        ("l2e", "table-9", "The student of LIME is more faithful", (11, 15)),
        ("mask-lrp", "table-1", "Ours has the highest AOPC on all five", (40, 40)),
        ("mask-lrp", "table-1", "Ours has the lowest LOdds in general", (39, 40)),
        ("mask-lrp", "table-1", "Even a random mask beats", (28, 30)),
        ("mask-lrp", "table-2", "On BERT-base, Ours finds more", (6, 6)),
        ("mask-lrp", "table-3", "Leaving out one kind of mask changes AOPC", (4, 4)),
        ("mask-lrp", "table-4", "Ours has a lower LOdds", (3, 3)),
        ("saloss", "table-2", "With the loss, significantly fewer", (19, 20)),
        ("saloss", "table-2", "Best of all rows", (40, 40)),
        ("saloss", "table-3", "The two datasets with a significant gain", (2, 2)),
        (
            "saloss",
            "table-8",
            "With TextRank fewer tokens suffice than with chi-squared or",
            (31, 40),
        ),
        (
            "saloss",
            "table-8",
            "With TextRank fewer tokens suffice than with chi-squared,",
            (16, 20),
        ),
        ("saloss", "table-8", "With TextRank fewer tokens suffice than with tf-idf,", (15, 20)),
        ("saloss", "table-8", "tf-idf is about as good", (12, 20)),
        ("saloss", "table-8", "With tf-idf fewer tokens", (10, 20)),
        ("saliency-learning", "table-1", "Saliency learning is significantly more", (4, 4)),
        ("saliency-learning", "table-1", "Its recall is the lower one", (4, 4)),
        ("saliency-learning", "table-2", "After saliency learning, nearly every", (4, 4)),
        ("saliency-learning", "table-4", "Less is lost on the event tasks", (8, 8)),
        ("sparse-attention", "table-1", "Inner representations are far from", (10, 12)),
        ("sparse-attention", "table-1", "Sparse attention mixes more words", (1, 6)),
        ("sparse-attention", "table-2", "The entropy of input importance falls", (6, 6)),
    ],
)
def test_the_papers_numbers_bear_out_as_many_statements_as_notes_say(
    paper: str, item: str, says: str, expected: tuple[int, int]
) -> None:
    assert agreeing(paper, item, says) == expected


@pytest.mark.parametrize("paper", sorted(PRINTED))
def test_every_claim_says_where_it_stands_and_no_two_say_the_same(paper: str) -> None:
    for item in recipe_named(paper).items:
        said = [claim.says for claim in item.claims]
        assert len(set(said)) == len(said) and all(text.endswith(".") for text in said)
        for claim in item.claims:
            assert claim.own == claim.where.startswith("our"), claim.says
            atoms = list(atoms_of(expand(claim)))
            assert atoms and len(set(map(str, atoms))) == len(atoms), claim.says
            if claim.at_least is not None:
                assert claim.at_least <= len(atoms), claim.says


@pytest.mark.parametrize("paper", sorted(PRINTED))
def test_every_reproduction_says_what_stands_for_what(paper: str) -> None:
    recipe = recipe_named(paper)
    assert recipe.stand_ins
    used = {
        cell.part.model
        for item in recipe.items
        for cell in ({} if item.maps else cells_of(item)).values()
    }
    shown = {name for item in recipe.items if item.maps for name in item.maps.models}
    assert set(recipe.models) == (used | shown) - {None}
    assert all(item.departs for item in recipe.items)

"""The whole line on a tiny model: a table, a figure, texts and a claim, twice the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import quiet
from faithbench.run.job import Job
from faithbench.run.loop import run_serving
from faithbench.run.request import Request, make_job
from faithbench.studies.reproduction.catalogue import (
    chosen_items,
    find_recipe,
    paper_names,
    recipe_folder,
)
from faithbench.studies.reproduction.measures import explanations
from faithbench.studies.reproduction.recipe import PaperRecipe
from faithbench.studies.reproduction.reproduce import reproduce
from faithbench.studies.reproduction.request import ReproduceRequest
from faithbench.studies.reproduction.result import FILE, Reproduction
from tests.studies.reproduction import (
    CLAIM,
    HEAD,
    MODEL,
    TABLE,
    files,
    recipe_of,
    refuse,
    request_of,
)
from tests.support.paths import ROOT
from tests.support.training import save_base

FIGURE = """\
[[items]]
id = "figure-1"
title = "By share of erased tokens"
kind = "figure"
chart = "lines"
cells = { model = "net" }
rows = [{ name = "A", explainer = "attention" }, { name = "B", explainer = "random" }]
columns = [{ name = "10%", metric = "aopc@10" }, { name = "50%", metric = "aopc@50" }]
"""
MAPS = """\
[[items]]
id = "figure-2"
title = "Texts"
kind = "maps"
maps = { models = ["net"], explainers = ["attention", "random"] }
"""
PARTS = (HEAD, MODEL, "texts = 8\n", TABLE, CLAIM, FIGURE, MAPS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("models"), "bert")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> PaperRecipe:
    return recipe_of(tmp_path_factory.mktemp("recipe"), *PARTS, model=folder)


@pytest.fixture(scope="module")
def done(
    tmp_path_factory: pytest.TempPathFactory, recipe: PaperRecipe
) -> tuple[ReproduceRequest, Reproduction]:
    """The whole paper, reproduced once."""
    request = request_of(recipe, tmp_path_factory.mktemp("done"))
    return request, reproduce(request)


def test_every_item_has_its_numbers(done: tuple[ReproduceRequest, Reproduction]) -> None:
    request, found = done
    assert (found.paper, found.recipe_sha256) == ("mini", request.recipe.digest)
    assert found.quick is False and list(found.sources) == ["bundled"]
    items = found.sources["bundled"]
    assert list(items) == ["table-1", "figure-1", "figure-2"]
    cells = items["table-1"].cells
    assert [(cell.row, cell.column, cell.printed) for cell in cells] == [
        ("A", "AOPC", 0.5), ("A", "LOdds", -1.5), ("B", "AOPC", 0.25), ("B", "LOdds", -0.5),
    ]  # fmt: skip
    assert all(cell.ours is not None and cell.n == 8 for cell in cells)
    assert [cell.seeds for cell in cells] == [1, 1, 3, 3]
    # AOPC by itself is the mean of its curve, of which the figure has two points.
    assert {cell.printed for cell in items["figure-1"].cells} == {None}
    assert [len(text.rows) for text in items["figure-2"].maps] == [2, 2]


def test_the_claim_is_judged_by_the_eight_texts(
    done: tuple[ReproduceRequest, Reproduction],
) -> None:
    (claim,) = done[1].claims
    (trial,) = claim.trials
    cells = {(c.row, c.column): c.ours or 0.0 for c in done[1].sources["bundled"]["table-1"].cells}
    assert trial.difference == pytest.approx(cells["A", "AOPC"] - cells["B", "AOPC"], rel=1e-4)
    assert (trial.n, trial.theirs) == (8, 0.25)
    # A random model's probabilities hardly move: .25 would have been seen.
    assert (claim.verdict, trial.side) == ("does not hold", "against")


def test_pages_and_charts_lie_side_by_side(done: tuple[ReproduceRequest, Reproduction]) -> None:
    request, found = done
    place = request.out / "mini"
    assert sorted(path.name for path in place.iterdir()) == [
        "README.md", "figure-1-bundled.png", "figure-1-bundled.svg", "figure-1-bundled.vl.json",
        "index.html", "reproduction.json",
    ]  # fmt: skip
    page, html = (place / "README.md").read_text(), (place / "index.html").read_text()
    for cell in found.sources["bundled"]["table-1"].cells:
        digest = cell.records[0].sha256[:8]
        assert digest in page and digest in html
    assert ".500 / **" in page and "-1.500 / **" in page
    assert (
        "| Table 1 | A has the higher AOPC. | **does not hold** | 0 of 1 for it, 1 against |"
        in (page)
    )
    assert "![By share of erased tokens](figure-1-bundled.svg)" in page
    assert "<script" not in html and "difference to random" in html
    assert "| mini | 1 | 0 | 1 | 0 |" in (request.out / "README.md").read_text()


def test_records_are_named_with_the_digest_of_their_rows(
    done: tuple[ReproduceRequest, Reproduction],
) -> None:
    request, _ = done
    data = json.loads((request.out / "mini" / FILE).read_text())
    for cell in data["sources"]["bundled"]["table-1"]["cells"]:
        for record in cell["records"]:
            stored = json.loads((request.results / record["path"]).read_text())
            assert stored["rows"]["sha256"] == record["sha256"]
    assert data["recipe_sha256"] == request.recipe.digest


def test_no_page_has_a_folder_of_this_machine(
    done: tuple[ReproduceRequest, Reproduction], folder: Path
) -> None:
    for content in files(done[0].out).values():
        assert str(folder.parent).encode() not in content
        assert str(done[0].results).encode() not in content


def test_a_second_call_computes_nothing_and_changes_no_byte(
    done: tuple[ReproduceRequest, Reproduction], monkeypatch: pytest.MonkeyPatch
) -> None:
    request, found = done
    monkeypatch.setattr(explanations, "run_serving", refuse)
    before = files(request.out)
    assert reproduce(request) == found
    assert files(request.out) == before


def test_items_may_be_asked_for_one_by_one(
    done: tuple[ReproduceRequest, Reproduction],
    recipe: PaperRecipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In any order; the page has them in the recipe's, and each stays as it was."""
    monkeypatch.setattr(explanations, "run_serving", refuse)
    results = done[0].results
    for name in ("figure-2", "table-1"):
        found = reproduce(request_of(recipe, tmp_path, results=results, items=(name,)))
    assert list(found.sources["bundled"]) == ["table-1", "figure-2"]
    page = (tmp_path / "out" / "mini" / "README.md").read_text()
    assert page.index("## Table 1") < page.index("## Figure 2") and "## Figure 1" not in page


def test_a_limit_explains_fewer_texts(recipe: PaperRecipe, tmp_path: Path) -> None:
    found = reproduce(request_of(recipe, tmp_path, limit=6, items=("table-1",)))
    assert {cell.n for cell in found.sources["bundled"]["table-1"].cells} == {6}
    (claim,) = found.claims
    assert claim.trials[0].n == 6


def test_quick_and_whole_do_not_share_a_folder(
    recipe: PaperRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(**changes: Any) -> Reproduction:
        return reproduce(request_of(recipe, tmp_path, **{"items": ("figure-2",)} | changes))

    assert ask(quick=True).quick is True
    page = (tmp_path / "out" / "mini" / "README.md").read_text()
    assert "**A quick reproduction: " in page
    with pytest.raises(FaithbenchError) as caught:
        ask()
    folder = tmp_path / "out" / "mini"
    assert str(caught.value) == f"{folder} holds a quick reproduction; choose another --out"
    assert ask(out=tmp_path / "whole").quick is False
    with pytest.raises(FaithbenchError, match="holds a whole reproduction; choose another --out"):
        ask(quick=True, out=tmp_path / "whole")


def test_a_published_record_is_used_instead_of_a_run(
    recipe: PaperRecipe, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both explainers, on 20 texts: cells then have all of them."""
    job = make_job(
        Request(
            explainer="attention,random", task="sst2", model=str(folder), limit=20, human=False,
            metrics="aopc,lodds", results=tmp_path / "published", device="cpu",
        )
    )  # fmt: skip
    run_serving(job, quiet)
    monkeypatch.setattr(explanations, "run_serving", refuse)
    request = request_of(recipe, tmp_path, also=(tmp_path / "published",), items=("table-1",))
    cells = reproduce(request).sources["bundled"]["table-1"].cells
    for cell in cells:
        (record,) = cell.records
        assert record.path.startswith("sst2-bundled/") and cell.n == 20
        stored = json.loads((tmp_path / "published" / record.path).read_text())
        assert stored["metrics"][cell.column.lower()]["mean"] == pytest.approx(cell.ours, rel=1e-5)
    assert not list((tmp_path / "results").rglob("*.rows.jsonl*"))


def test_a_killed_call_keeps_the_items_that_were_done(
    recipe: PaperRecipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def killer(job: Job, *arguments: Any) -> Any:
        calls.append([selected.label for selected in job.explainers])
        return run_serving(job, *arguments)

    def progress(what: str, _done: int, _total: int) -> None:
        if what.startswith("mini/figure-1"):
            raise KeyboardInterrupt

    monkeypatch.setattr(explanations, "run_serving", killer)
    request = request_of(recipe, tmp_path, limit=6)
    with pytest.raises(KeyboardInterrupt):
        reproduce(request, progress)
    kept = json.loads((tmp_path / "out" / "mini" / FILE).read_text())
    assert list(kept["sources"]["bundled"]) == ["table-1"] and len(calls) == 1
    assert len(reproduce(request).sources["bundled"]) == 3
    assert len(calls) == 1, "the figure is read from the records of the table"


def test_items_of_another_source_stay(recipe: PaperRecipe, tmp_path: Path) -> None:
    """The hub has no such model, so that its cells are missing, and ours keep their numbers."""
    ours = reproduce(request_of(recipe, tmp_path, items=("table-1",), limit=6))
    both = reproduce(request_of(recipe, tmp_path, items=("table-1", "figure-2"), source="hub"))
    assert both.sources["bundled"] == ours.sources["bundled"]
    hub = both.sources["hub"]
    assert {cell.missing for cell in hub["table-1"].cells} == {
        "the paper's own model is not on the hub"
    }
    assert hub["figure-2"].maps == ()
    (claim,) = hub["table-1"].claims
    assert (claim.verdict, claim.why) == (
        "cannot be told", "the paper's own model is not on the hub",
    )  # fmt: skip


# Which recipe, and which items


def test_recipes_are_found_by_name_or_path(tmp_path: Path) -> None:
    assert recipe_folder() == ROOT / "recipes"
    assert "mask-lrp" in paper_names() and find_recipe("mask-lrp").paper == "mask-lrp"
    recipe_of(tmp_path, HEAD, MODEL, TABLE)
    assert find_recipe(str(tmp_path / "recipe.toml")).paper == "mini"
    with pytest.raises(FaithbenchError, match="no paper named 'mask-lpr'; did you mean 'mask-lrp'"):
        find_recipe("mask-lpr")


def test_all_items_are_chosen_if_none_is_named(recipe: PaperRecipe) -> None:
    assert chosen_items(recipe, []) == ("table-1", "figure-1", "figure-2")
    assert chosen_items(recipe, ["figure-2"]) == ("figure-2",)
    with pytest.raises(
        FaithbenchError,
        match="no table or figure of mini named 'table-9'; did you mean 'table-1'",
    ):
        chosen_items(recipe, ["table-9"])

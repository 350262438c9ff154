"""`faithbench reproduce`: its list, its options, its refusals in one line, and its last lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faithbench.studies.reproduction import reproduce as module
from faithbench.studies.reproduction.catalogue import paper_names, recipe_folder
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import cells_of
from faithbench.studies.reproduction.request import ReproduceRequest
from faithbench.studies.reproduction.result import (
    CellResult,
    ClaimResult,
    ItemResult,
    Reproduction,
    write_reproduction,
)
from tests.studies.reproduction import CLAIM, HEAD, MODEL, TABLE, put_recipe
from tests.support.commands import LIGHT, Call, complaint, fresh
from tests.support.training import save_base

LONG = "A claim that is told in so many words that it does not fit into a single line of a table."


def made(paper: str, *items: str, **changes: Any) -> Reproduction:
    """Return a reproduction in which every item has one claim of many words."""
    claim = ClaimResult(
        says=LONG, where="Sec. 1", test="t", verdict="cannot be told",
        count="0 of 40 for it, 12 against, 28 undecided",
    )  # fmt: skip
    cells = (CellResult(row="A", column="x", ours=0.5), CellResult(row="B", column="x"))
    results = {
        name: ItemResult(
            id=name, title="T", kind="table", cells=cells, claims=(claim,), seconds=600.0
        )
        for name in items
    }
    facts: dict[str, Any] = {"paper": paper, "recipe_sha256": "ab", "sources": {"bundled": results}}
    return Reproduction(**facts | changes)


# The list


def test_all_papers_are_listed_within_80_columns(call: Call) -> None:
    said = call("reproduce")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 80
    words = [line.split() for line in lines]
    for paper in paper_names():
        recipe = read_recipe(recipe_folder() / f"{paper}.toml")
        first = recipe.items[0]
        place = next(n for n, line in enumerate(words) if line[:1] == [f"{paper}/{first.id}"])
        assert words[place][1] == str(len(cells_of(first)))
        shown = [
            line[0] for line in words[place + 1 :] if line and line[0].startswith(("tab", "fig"))
        ]
        assert shown[: len(recipe.items) - 1] == [item.id for item in recipe.items[1:]]
    assert said.out.count("not run") == sum(
        len(read_recipe(recipe_folder() / f"{paper}.toml").items) for paper in paper_names()
    )
    assert lines[-1] == "run one: faithbench reproduce mask-lrp/table-1 --data DATA"


def test_what_was_run_has_its_time_and_state(call: Call, tmp_path: Path) -> None:
    write_reproduction(made("l2e", "table-1"), tmp_path / "reproductions" / "l2e")
    line = next(x for x in call("reproduce").out.splitlines() if x.startswith("l2e/table-1"))
    assert line.split()[-5:] == ["10", "1", "of", "2", "cells"]
    (tmp_path / "reproductions" / "l2e" / "reproduction.json").write_text("{")
    line = next(x for x in call("reproduce").out.splitlines() if x.startswith("l2e/table-1"))
    assert line.split()[-2:] == ["not", "run"], "a list is no place to stop at a broken file"


def test_the_list_loads_nothing_heavy(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LIGHT, "reproduce"],
        env=fresh(tmp_path), cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert process.stdout.splitlines()[-1] == "heavy: [] code: 0"


def test_help_says_what_is_asked_and_what_is_kept(call: Call) -> None:
    said = call("reproduce", "--help")
    assert said.code == 0 and "Reproduce a paper's tables and figures." in said.out
    for option in ("--data", "--model", "--limit", "--seeds", "--quick", "--long", "--jobs",
                   "--results", "--records", "--out"):  # fmt: skip
        assert option in said.out
    assert "reproduce" in call("--help").out


# Refusals


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("mask-lpr",), "no paper named 'mask-lpr'; did you mean 'mask-lrp'?"),
        (("bert",), "no paper named 'bert'; known: l2e, mask-lrp, saliency-learning, saloss, "),
        (
            ("mask-lrp/table-11",),
            "no table or figure of mask-lrp named 'table-11'; did you mean 'table-1'?",
        ),
        (("mask-lrp", "--model", "hbu"), "no kind of model named 'hbu'; did you mean 'hub'?"),
        (("nowhere.toml",), "cannot read recipe nowhere.toml: No such file or directory"),
        (("wrong.toml",), "recipe wrong.toml: no task named 'sst3'; did you mean 'sst2'?"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    words: tuple[str, ...], said: str, call: Call, tmp_path: Path
) -> None:
    text = HEAD + MODEL.replace('"sst2"', '"sst3"') + TABLE
    (tmp_path / "wrong.toml").write_text(text)
    stopped = call("reproduce", *words)
    # What is about to be loaded may have been said before.
    assert stopped.out in ("", "loading\n")
    assert complaint(stopped._replace(out="")).startswith(said)
    assert not (tmp_path / "reproductions").exists() and not (tmp_path / "results").exists()


@pytest.mark.parametrize("words", [("--limit", "0"), ("--seeds", "no"), ("--jobs", "0")])
def test_usage_errors_end_with_2(words: tuple[str, ...], call: Call) -> None:
    said = call("reproduce", "mask-lrp", *words)
    assert said.code == 2 and words[0] in said.err and "Traceback" not in said.err


# What is asked, and what is said


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[ReproduceRequest]:
    """The requests that the command made; nothing is reproduced."""
    requests: list[ReproduceRequest] = []

    def fake(request: ReproduceRequest, _progress: object) -> Reproduction:
        requests.append(request)
        found = made(request.recipe.paper, *request.items, quick=request.quick)
        return found.model_copy(update={"sources": {request.source: found.sources["bundled"]}})

    monkeypatch.setattr(module, "reproduce", fake)
    return requests


def test_options_reach_the_request(call: Call, asked: list[ReproduceRequest]) -> None:
    assert call("reproduce", "saloss/table-2").code == 0
    words = (
        "--data",
        "d",
        "--model",
        "hub",
        "--limit",
        "7",
        "--seeds",
        "2",
        "--long",
        "--jobs",
        "2",
    )
    more = ("--device", "cpu", "--results", "r", "--records", "p", "--out", "o")
    assert call("reproduce", "saloss/table-2", *words, *more).code == 0
    usual, other = asked
    assert usual == ReproduceRequest(
        recipe=usual.recipe,
        items=("table-2",),
        results=Path("results/reproductions"),
        out=Path("reproductions"),
        also=(Path("leaderboard/records"),),
    )
    assert usual.recipe.paper == "saloss"
    assert other == ReproduceRequest(
        recipe=usual.recipe, items=("table-2",), results=Path("r"), out=Path("o"), source="hub",
        folder=Path("d"), limit=7, seeds=2, long=True, jobs=2, device="cpu", also=(Path("p"),),
    )  # fmt: skip


def test_a_quick_one_has_folders_of_its_own_and_says_so(
    call: Call, asked: list[ReproduceRequest]
) -> None:
    said = call("reproduce", "mask-lrp/figure-1", "--quick")
    (request,) = asked
    assert request.quick and request.results == Path("results/reproductions-quick")
    assert request.out == Path("results/reproductions-quick/pages")
    assert said.out.splitlines()[-2:] == [
        "page: results/reproductions-quick/pages/mask-lrp/README.md",
        "a quick reproduction proves nothing; leave out --quick for one that does",
    ]


def test_all_stands_for_all_papers(call: Call, asked: list[ReproduceRequest]) -> None:
    assert call("reproduce", "all").code == 0
    assert [request.recipe.paper for request in asked] == list(paper_names())
    assert all(request.items == tuple(request.recipe.by_id) for request in asked)


def test_verdicts_are_told_within_80_columns(call: Call, asked: list[ReproduceRequest]) -> None:
    said = call("reproduce", "saliency-learning")
    lines = said.out.splitlines()
    assert max(map(len, lines)) <= 80 and "saliency-learning" in said.out
    assert " ".join(said.out.split()).count("cannot be") == len(asked[0].items)
    assert lines[-1] == "page: reproductions/saliency-learning/README.md"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("models"), "bert")


def test_a_recipe_of_ones_own_from_the_file_to_the_page(
    model: Path, call: Call, tmp_path: Path
) -> None:
    text = HEAD + MODEL.replace("bundled:sst2", str(model)) + "texts = 6\n" + TABLE + CLAIM
    path = put_recipe(tmp_path, text)
    words = ("reproduce", path.name, "--device", "cpu", "--jobs", "1")
    first = call(*words)
    assert (first.code, first.err) == (0, "")
    assert first.out.splitlines()[-1] == "page: reproductions/mini/README.md"
    page = (tmp_path / "reproductions" / "mini" / "README.md").read_text()
    assert ".500 / **" in page and "A has the higher AOPC." in page
    again = call(*words)
    assert again.code == 0
    assert (tmp_path / "reproductions" / "mini" / "README.md").read_text() == page


def test_ctrl_c_says_what_is_kept(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "reproduce", stop)
    said = call("reproduce", "mask-lrp/figure-1")
    assert said.code == 130 and "Traceback" not in said.err
    assert "nothing is kept" not in said.err

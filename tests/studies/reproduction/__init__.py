"""Small recipes, requests and values that the tests of this room share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from faithbench.studies.reproduction.claims import ClaimSpec
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import CellSpec, PaperRecipe, Part
from faithbench.studies.reproduction.request import Clock, ReproduceRequest
from faithbench.studies.reproduction.values import Measured, Value, measured
from faithbench.studies.reproduction.verdicts import Judged, judge
from tests.support.builders import MINI

HEAD = 'paper = "mini"\ntitle = "A mini paper"\ncitation = "Nobody (2024)."\n'
MODEL = '[models.net]\ntask = "sst2"\nstands_for = "BERT-base"\nbundled = "bundled:sst2"\n'
TABLE = """\
[[items]]
id = "table-1"
title = "Two methods"
rows = [{ name = "A", explainer = "attention" }, { name = "B", explainer = "random" }]
columns = [
    { name = "AOPC", model = "net", metric = "aopc" },
    { name = "LOdds", model = "net", metric = "lodds" },
]
printed = [[0.5, -1.5], [0.25, -0.5]]
"""
CLAIM = """\
[[items.claims]]
says = "A has the higher AOPC."
where = "Table 1"
test = "signed-rank"
greater = ["A | AOPC", "B | AOPC"]
"""
MARKED = (
    MINI
    + """\
rationale = "human"
[models]
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
)
"""A task of which people marked the words that decide."""


def put_recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text)
    return path


def recipe_of(folder: Path, *parts: str, model: Path | None = None) -> PaperRecipe:
    """Read a recipe made of parts; its bundled model is the one in a folder, if told."""
    text = "".join(parts)
    if model is not None:
        text = text.replace("bundled:sst2", str(model))
    return read_recipe(put_recipe(folder, text))


def request_of(recipe: PaperRecipe, place: Path, **changes: Any) -> ReproduceRequest:
    """Ask for all items, with everything that is made below a folder."""
    usual: dict[str, Any] = {
        "recipe": recipe,
        "items": tuple(recipe.by_id),
        "results": place / "results",
        "out": place / "out",
        "jobs": 1,
        "device": "cpu",
    }
    return ReproduceRequest(**usual | changes)


def clock_of(request: ReproduceRequest) -> Clock:
    return Clock(request.results / "times.json")


def made(numbers: Sequence[float], *, seeds: int = 1) -> Measured:
    """Return the value of examples e0, e1, ... that have these numbers under every seed."""
    value = measured([{f"e{i}": number for i, number in enumerate(numbers)}] * seeds)
    assert isinstance(value, Measured)
    return value


def alone(number: float, by_seed: Sequence[float] = ()) -> Measured:
    """Return a number without examples, and without seeds unless they are given."""
    seeds = tuple(by_seed) or (number,)
    return Measured(number, None, len(seeds), {}, seeds)


def grid(printed: Mapping[str, float | None]) -> dict[str, CellSpec]:
    """Return cells by name, with what the paper printed."""
    cells = {}
    for name, number in printed.items():
        row, column = name.split(" | ")
        cells[name] = CellSpec("table-1", row, column, Part(), number, None)
    return cells


def unprinted(values: Mapping[str, Value]) -> dict[str, CellSpec]:
    return grid(dict.fromkeys(values))


def claim(test: str, **statement: Any) -> ClaimSpec:
    facts = {"says": "Something.", "where": "Sec. 1", "test": test}
    return ClaimSpec.model_validate(facts | statement)


def put_marked_task(folder: Path) -> Path:
    """Write a task of 36 texts in which good or bad decides, and is marked; return its file."""
    (folder / "mini").mkdir()
    for split, size in (("train", 20), ("dev", 6), ("test", 10)):
        rows = []
        for n in range(size):
            word = ("bad", "good")[n % 2]
            text = f"the w{n} film is {word} , and w{n + 1} too"
            start = text.index(word)
            marks = [[start, start + len(word)]]
            rows.append({"id": f"{split}{n}", "text": text, "label": n % 2, "rationale": marks})
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "mini" / f"{split}.jsonl").write_text(lines)
    path = folder / "mini.toml"
    path.write_text(MARKED)
    return path


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was done already")


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


A, B, C = "A | x", "B | x", "C | x"
LOW = tuple(n / 10 for n in range(1, 11))
HIGH = tuple(value + 0.31 + n / 100 for n, value in enumerate(LOW))
"""Ten examples, each higher than in LOW, by .355 in the mean: p is 2 / 2^10."""


def judged(
    test: str,
    values: Mapping[str, Value],
    printed: Mapping[str, float | None] | None = None,
    **statement: Any,
) -> Judged:
    cells = unprinted(values) if printed is None else grid(printed)
    return judge(claim(test, **statement), cells, values)


def sides(found: Judged) -> list[str]:
    return [trial.side for trial in found.trials]

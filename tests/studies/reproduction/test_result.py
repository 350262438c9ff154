"""What is kept of a reproduction: rounded cells, claims, orders of methods, and a closed file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.studies.reproduction.recipe import CellSpec, Item, Part
from faithbench.studies.reproduction.result import (
    FILE,
    CellResult,
    ItemResult,
    RankResult,
    RecordFacts,
    Reproduction,
    cell_result,
    claim_result,
    rank_results,
    read_reproduction,
    write_reproduction,
)
from faithbench.studies.reproduction.values import Measured, Missing, RecordRef
from faithbench.studies.reproduction.verdicts import judge
from tests.studies.reproduction import claim, grid, made

CELL = CellSpec("table-1", "A", "x", Part(), 0.5, 0.01)


def test_a_cell_is_kept_with_six_digits_and_its_records() -> None:
    value = Measured(
        1 / 3, (0.123456789, 2 / 3), 7, {"e": 1.0}, (0.3, 0.4), (RecordRef("records/a.json", "ab"),)
    )
    assert cell_result(CELL, value) == CellResult(
        row="A", column="x", printed=0.5, spread=0.01, ours=0.333333, interval=(0.123457, 0.666667),
        n=7, seeds=2, records=(RecordFacts(path="records/a.json", sha256="ab"),), missing="",
    )  # fmt: skip


def test_a_cell_that_is_missing_says_why() -> None:
    found = cell_result(CELL, Missing("only the hub has this model"))
    assert (found.printed, found.ours, found.missing) == (0.5, None, "only the hub has this model")
    assert (found.n, found.seeds, found.records) == (0, 0, ())


def test_a_claim_is_kept_with_its_trials() -> None:
    values = {"A | x": made([n / 3 for n in range(1, 9)]), "B | x": made([0.0] * 8)}
    asked = claim("signed-rank", greater=["A | x", "B | x"], note="A note.")
    found = claim_result(judge(asked, grid({"A | x": 0.9, "B | x": 0.2}), values))
    assert (found.says, found.where, found.test) == ("Something.", "Sec. 1", "signed-rank")
    assert (found.verdict, found.count, found.note) == ("holds", "1 of 1 for it", "A note.")
    (trial,) = found.trials
    assert (trial.side, trial.difference, trial.theirs, trial.n) == ("for", 1.5, 0.7, 8)
    assert trial.p == 0.00781, "2 / 2^8 with three digits"


def ranked(item: dict[str, Any], numbers: list[list[tuple[float | None, float | None]]]) -> Any:
    """Return the comparison of orders in a table of printed and measured numbers."""
    rows = [{"name": f"r{n}"} for n in range(len(numbers))]
    columns = [{"name": f"c{n}"} for n in range(len(numbers[0]))]
    printed = [[0] * len(columns)] * len(rows)
    spec = Item.model_validate(
        {"id": "table-1", "title": "T", "rows": rows, "columns": columns, "printed": printed} | item
    )
    cells = tuple(
        CellResult(row=f"r{r}", column=f"c{c}", printed=theirs, ours=ours)
        for r, row in enumerate(numbers)
        for c, (theirs, ours) in enumerate(row)
    )
    return rank_results(spec, cells)


def test_the_order_of_methods_is_compared_column_by_column() -> None:
    """Four methods: in the first column one pair of six is in another order, in the second all."""
    numbers: list[list[tuple[float | None, float | None]]] = [
        [(1.0, 10.0), (1.0, 4.0)],
        [(2.0, 30.0), (2.0, 3.0)],
        [(3.0, 20.0), (3.0, 2.0)],
        [(4.0, 40.0), (4.0, 1.0)],
    ]
    first, second = ranked({"ranked": "rows"}, numbers)
    assert first == RankResult(line="c0", tau=0.666667, p=0.333, n=4)
    assert second == RankResult(line="c1", tau=-1.0, p=0.0833, n=4)
    assert ranked({}, numbers) == ()
    # Methods along the columns: each row has two, too few to have an order.
    assert ranked({"ranked": "columns"}, numbers) == ()
    turned = [list(line) for line in zip(*numbers, strict=True)]
    assert [one.line for one in ranked({"ranked": "columns"}, turned)] == ["r0", "r1"]


def test_only_cells_with_both_numbers_have_an_order() -> None:
    numbers: list[list[tuple[float | None, float | None]]] = [
        [(1.0, 1.0)], [(2.0, None)], [(None, 5.0)], [(3.0, 3.0)], [(4.0, 4.0)],
    ]  # fmt: skip
    (found,) = ranked({"ranked": "rows"}, numbers)
    assert (found.n, found.tau) == (3, 1.0)
    assert ranked({"ranked": "rows"}, numbers[:4]) == ()


def test_equal_numbers_have_no_order() -> None:
    (found,) = ranked({"ranked": "rows"}, [[(1.0, 5.0)], [(2.0, 5.0)], [(3.0, 5.0)]])
    assert found == RankResult(line="c0", tau=None, p=None, n=3)


def small() -> Reproduction:
    item = ItemResult(
        id="table-1", title="T", kind="table", cells=(CellResult(row="A", column="é", ours=0.5),)
    )
    return Reproduction(paper="mini", recipe_sha256="ab", sources={"bundled": {"table-1": item}})


def test_a_reproduction_comes_back_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "out" / "mini"
    assert read_reproduction(folder) is None
    write_reproduction(small(), folder)
    assert read_reproduction(folder) == small()
    first = (folder / FILE).read_bytes()
    write_reproduction(small(), folder)
    assert (folder / FILE).read_bytes() == first
    data = json.loads(first)
    assert data["schema"] == 1 and list(data) == sorted(data) and "é".encode() in first


def test_claims_are_those_of_all_sources_and_items() -> None:
    values = {"A | x": made([1.0] * 6)}
    one = claim_result(judge(claim("signed-rank", greater=["A | x", 0]), grid({}) | _x(), values))
    items = {
        name: ItemResult(id=name, title="T", kind="table", claims=(one,))
        for name in ("table-1", "table-2")
    }
    both = Reproduction(paper="p", recipe_sha256="a", sources={"bundled": items, "hub": items})
    assert len(both.claims) == 4 and {claim.verdict for claim in both.claims} == {"holds"}


def _x() -> dict[str, CellSpec]:
    return grid({"A | x": None})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data | {"more": 1}, "unknown key 'more'"),
        (lambda data: data | {"schema": 2}, "key 'schema': Input should be 1"),
        (lambda data: {k: v for k, v in data.items() if k != "paper"}, "key 'paper': Field req"),
        (lambda data: data | {"sources": {"cloud": {}}}, "key 'sources.cloud.[key]': Input should"),
        (lambda data: [data], "Input should be a valid dictionary"),
    ],
)
def test_a_file_of_another_form_is_refused_in_one_line(
    tmp_path: Path, change: Callable[[Any], Any], said: str
) -> None:
    write_reproduction(small(), tmp_path)
    path = tmp_path / FILE
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    message = complaint(tmp_path)
    assert message.startswith(f"{path}: ") and said in message


@pytest.mark.parametrize("content", [b"", b'{"schema": 1', b'{"a": 1, "a": 1}', b"NaN", b"\xff"])
def test_a_file_that_is_no_json_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert complaint(tmp_path).startswith(f"cannot read {tmp_path / FILE}: ")


def complaint(folder: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        read_reproduction(folder)
    message = str(caught.value)
    assert message.endswith("; remove it") and "\n" not in message
    return message


def test_no_cell_holds_what_is_no_number() -> None:
    with pytest.raises(ValidationError, match="finite number"):
        CellResult(row="A", column="x", ours=float("nan"))

"""Charts of figures: what is drawn, by which scale, and the three files beside the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.studies.reproduction.charts import chart_of, write_chart
from faithbench.studies.reproduction.recipe import Item
from faithbench.studies.reproduction.result import CellResult, ItemResult


def figure(**changes: Any) -> Item:
    usual: dict[str, Any] = {
        "id": "figure-1",
        "title": "Two lines",
        "kind": "figure",
        "chart": "lines",
        "rows": [{"name": "A"}, {"name": "B"}],
        "columns": [{"name": "10%"}, {"name": "2%"}],
    }
    return Item.model_validate(usual | changes)


def result(*cells: CellResult) -> ItemResult:
    usual = (
        CellResult(row="B", column="10%", ours=0.5, interval=(0.25, 0.75), n=3),
        CellResult(row="A", column="10%", ours=0.125, n=1),
        CellResult(row="A", column="2%", missing="no such model"),
    )
    return ItemResult(id="figure-1", title="Two lines", kind="figure", cells=cells or usual)


def test_a_chart_has_our_numbers_with_their_intervals() -> None:
    spec = chart_of(figure(), result())
    assert spec is not None and spec["title"]["text"] == "Two lines"
    assert spec["data"]["values"] == [
        {"row": "B", "column": "10%", "value": 0.5, "low": 0.25, "high": 0.75},
        {"row": "A", "column": "10%", "value": 0.125},
    ]
    # Columns in the order of the figure, not of the alphabet.
    assert spec["encoding"]["x"]["sort"] == ["10%", "2%"]
    assert spec["encoding"]["color"]["scale"]["domain"] == ["B", "A"]


@pytest.mark.parametrize(
    ("changes", "mark", "scale"),
    [
        ({}, {"type": "line", "point": True}, {"zero": False}),
        ({"chart": "dots"}, {"type": "point", "point": True}, {"zero": False}),
        ({"chart": "bars"}, {"type": "bar"}, {"zero": True}),
        ({"chart": "bars", "log": True}, {"type": "bar"}, {"type": "log"}),
    ],
)
def test_bars_begin_at_zero_and_lines_need_not(
    changes: dict[str, Any], mark: dict[str, Any], scale: dict[str, Any]
) -> None:
    spec = chart_of(figure(**changes), result())
    assert spec is not None
    assert (spec["mark"], spec["encoding"]["y"]["scale"]) == (mark, scale)
    assert ("xOffset" in spec["encoding"]) == (mark["type"] == "bar")
    assert ("strokeDash" in spec["encoding"]) == (mark["type"] == "line")


def test_many_columns_have_room_and_slanted_names() -> None:
    many = [{"name": f"c{n}"} for n in range(30)]
    narrow, wide = chart_of(figure(), result()), chart_of(figure(columns=many), result())
    assert narrow is not None and wide is not None
    assert (narrow["width"], wide["width"]) == (320, 760)
    angles = [spec["encoding"]["x"]["axis"]["labelAngle"] for spec in (narrow, wide)]
    assert angles == [0, -40]


def test_more_rows_than_colours_begin_again() -> None:
    cells = [CellResult(row=f"r{n}", column="10%", ours=1.0) for n in range(12)]
    spec = chart_of(figure(), result(*cells))
    assert spec is not None
    colours = spec["encoding"]["color"]["scale"]["range"]
    assert len(set(colours)) == 10 and colours[10:] == colours[:2]


def test_many_rows_are_drawn_in_panels_by_what_stands_before_the_comma() -> None:
    names = [f"{task}, {way}" for task in ("SST", "IMDb", "News") for way in ("x", "h", "both")]
    cells = [CellResult(row=name, column="10%", ours=1.0) for name in names]
    spec = chart_of(figure(), result(*cells))
    assert spec is not None and spec["facet"]["field"] == "panel"
    assert {value["panel"] for value in spec["data"]["values"]} == {"SST", "IMDb", "News"}
    assert spec["spec"]["encoding"]["color"]["scale"]["domain"] == ["x", "h", "both"]


def test_there_may_be_nothing_to_draw(tmp_path: Path) -> None:
    missing = result(CellResult(row="A", column="2%", missing="no such model"))
    assert chart_of(figure(), missing) is None and chart_of(figure(chart=""), result()) is None
    assert write_chart(figure(), missing, "figure-1-bundled", tmp_path / "out") is False
    assert not (tmp_path / "out").exists()


def test_a_chart_is_three_files_and_the_same_twice(tmp_path: Path) -> None:
    """Its title cannot leave the picture as markup."""
    item = figure(title="<script>alert(1)</script>")
    names = [f"figure-1-bundled.{ending}" for ending in ("png", "svg", "vl.json")]
    written = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        assert write_chart(item, result(), "figure-1-bundled", folder) is True
        assert sorted(path.name for path in folder.iterdir()) == names
        written.append([(folder / name).read_bytes() for name in names])
    assert written[0] == written[1]
    png, svg, spec = written[0]
    assert png.startswith(b"\x89PNG") and b"<script>" not in svg and b"&lt;script&gt;" in svg
    assert json.loads(spec) == chart_of(item, result())

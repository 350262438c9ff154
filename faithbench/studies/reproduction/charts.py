"""Figures of a reproduction as Vega-Lite: beside the page as JSON, SVG and PNG."""

from __future__ import annotations

from pathlib import Path

from faithbench.studies.reproduction.recipe import Item
from faithbench.studies.reproduction.result import ItemResult
from faithbench.studies.vega import Spec, write_charts

# Told apart without colour vision, too (Okabe and Ito), and then by their dashes.
_COLOURS = [
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#000000", "#999999",
    "#8c564b", "#bcbd22",
]  # fmt: skip
_TOGETHER = 8
"""Rows that one panel shows; more are told apart by what stands before the comma in their names."""


def write_chart(item: Item, result: ItemResult, name: str, folder: Path) -> bool:
    """Write the chart of a figure under a name; returns whether there was something to draw."""
    spec = chart_of(item, result)
    if spec is None:
        return False
    write_charts({name: spec}, folder)
    return True


def chart_of(item: Item, result: ItemResult) -> Spec | None:
    """Return the chart of a figure's cells: a colour per row, columns along the axis."""
    values = [
        {"row": cell.row, "column": cell.column, "value": cell.ours}
        | ({} if cell.interval is None else {"low": cell.interval[0], "high": cell.interval[1]})
        for cell in result.cells
        if cell.ours is not None
    ]
    if not item.chart or not values:
        return None
    rows = list(dict.fromkeys(str(value["row"]) for value in values))
    panels = len(rows) > _TOGETHER and all(", " in row for row in rows)
    if panels:
        for value in values:
            value["panel"], _, value["row"] = str(value["row"]).partition(", ")
        rows = list(dict.fromkeys(str(value["row"]) for value in values))
    scale: Spec = {"type": "log"} if item.log else {"zero": item.chart == "bars"}
    y: Spec = {"field": "value", "type": "quantitative", "title": None, "scale": scale}
    x: Spec = {
        "field": "column",
        "type": "nominal",
        "sort": [column.name for column in item.columns],
        "title": None,
        "axis": {"labelAngle": -40 if len(item.columns) > 4 else 0},
    }
    colour: Spec = {
        "field": "row", "type": "nominal", "sort": rows,
        "scale": {"domain": rows, "range": [_COLOURS[i % len(_COLOURS)] for i in range(len(rows))]},
    }  # fmt: skip
    encoding: Spec = {"x": x, "y": y, "color": colour}
    mark: Spec = {"type": "bar"}
    if item.chart == "bars":
        encoding["xOffset"] = {"field": "row", "sort": rows}
    else:
        mark = {"type": "line" if item.chart == "lines" else "point", "point": True}
        if item.chart == "lines":
            encoding["strokeDash"] = {"field": "row", "type": "nominal", "legend": None}
    width = min(760, max(320, 40 * len(item.columns)))
    inner: Spec = {"mark": mark, "encoding": encoding, "width": width, "height": 260}
    if panels:
        facet = {"field": "panel", "type": "nominal", "sort": None, "title": None}
        inner = {
            "facet": facet, "columns": 3, "spec": inner | {"width": 220, "height": 170},
        }  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": item.title, "anchor": "start", "fontSize": 13},
        "background": "white",
        "data": {"values": values},
        **inner,
        "config": {
            "font": "sans-serif",
            "view": {"stroke": None},
            "axis": {"labelFontSize": 11, "gridColor": "#e5e8ec"},
            "legend": {"orient": "bottom", "title": None, "columns": 4, "labelLimit": 0},
        },
    }

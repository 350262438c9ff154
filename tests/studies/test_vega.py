"""A chart is written three times, and the same chart gives the same bytes."""

from __future__ import annotations

from pathlib import Path

from faithbench.studies.vega import write_charts

SPEC = {
    "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
    "data": {"values": [{"x": "a", "y": 1}, {"x": "b", "y": 2}]},
    "mark": "bar",
    "encoding": {
        "x": {"field": "x", "type": "nominal"},
        "y": {"field": "y", "type": "quantitative"},
    },
}


def test_a_chart_is_json_svg_and_png(tmp_path: Path) -> None:
    for folder in (tmp_path / "one", tmp_path / "two"):
        write_charts({"chart": SPEC}, folder)
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert sorted(files) == ["chart.png", "chart.svg", "chart.vl.json"]
    assert files["chart.svg"].startswith(b"<svg") and files["chart.png"][1:4] == b"PNG"
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}

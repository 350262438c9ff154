"""The paper's three figures as Vega-Lite: inside the page's folder as JSON, SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from faithbench.studies.sparse_attention.claims import Group, groups_of, mean, over_seeds
from faithbench.studies.sparse_attention.record import StudyRecord
from faithbench.studies.vega import Spec, write_charts

ORDER = ["softmax", "-10", "-1", "0", "0.5", "0.9"]


def write_figures(records: Sequence[StudyRecord], folder: Path) -> tuple[str, ...]:
    """Write every figure and return their names."""
    figures = figures_of(groups_of(records))
    write_charts(figures, folder)
    return tuple(figures)


def figures_of(groups: Sequence[Group]) -> dict[str, Spec]:
    """Return the figures by name; they show means over texts and seeds."""
    return {
        "figure-1": _bars(
            "Attention, and the gradient of words and of what is inside",
            [
                {"group": group.name, "lambda": shown, "of": of, "value": value}
                for group, shown, found in _networks(groups)
                for of, name in (("inputs x", "tau_gradient_x"), ("inner h", "tau_gradient_h"))
                if (value := mean(over_seeds(found, name))) is not None
            ],
            "tau-b with the gradient",
        ),
        "figure-2": _bars(
            "How evenly influence and attention are spread over words",
            [
                {"group": group.name, "lambda": shown, "of": of, "value": value}
                for group, shown, found in _networks(groups)
                for of, name in (
                    ("gradient of x", "entropy_gradient_x"),
                    ("leave-one-out of x", "entropy_loo_x"),
                    ("attention", "entropy_attention"),
                )
                if (value := mean(over_seeds(found, name))) is not None
            ],
            "normalised entropy",
        ),
        "figure-3": _curves(
            [
                {"group": group.name, "lambda": f"{strength:g}", "of": of, "value": value}
                for group in groups
                for strength, found in group.strengths.items()
                for of, name in (
                    ("tau-b with the gradient", "tau_gradient_x"),
                    ("its ceiling under ties", "ceiling"),
                    ("tau-b / ceiling", "share_gradient_x"),
                    ("tau-b with leave-one-out", "tau_loo_x"),
                )
                if (value := mean(over_seeds(found, name))) is not None
            ]
        ),
    }


def _networks(groups: Sequence[Group]) -> Iterator[tuple[Group, str, list[StudyRecord]]]:
    for group in groups:
        for projection, found in group.by_projection.items():
            strength = found[0].network.strength
            yield group, projection if strength is None else f"{strength:g}", found


_CONFIG: Spec = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 11, "titleFontSize": 12, "grid": True, "gridColor": "#e5e8ec"},
    "header": {"labelFontSize": 12, "labelFontWeight": "bold", "title": None},
    "legend": {"orient": "bottom", "title": None, "labelFontSize": 12, "symbolLimit": 10},
}
# Told apart without colour vision, too (Okabe and Ito).
_COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7"]


def _spec(title: str, rows: list[dict[str, Any]], inner: Spec) -> Spec:
    colours = list(dict.fromkeys(row["of"] for row in rows))
    colour = {"field": "of", "type": "nominal", "scale": {"domain": colours, "range": _COLOURS}}
    inner["encoding"]["color"] = colour
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": {"text": title, "anchor": "start", "fontSize": 14},
        "background": "white",
        "data": {"values": [row | {"value": round(row["value"], 4)} for row in rows]},
        "facet": {"field": "group", "type": "nominal", "sort": None},
        "columns": 2,
        "spec": {"width": 300, "height": 150, **inner},
        "config": _CONFIG,
    }


def _bars(title: str, rows: list[dict[str, Any]], value: str) -> Spec:
    encoding = {
        "x": {
            "field": "lambda",
            "type": "nominal",
            "sort": ORDER,
            "title": "lambda of sparsegen",
            "axis": {"labelAngle": 0},
        },
        "xOffset": {"field": "of"},
        "y": {"field": "value", "type": "quantitative", "title": value},
    }
    return _spec(title, rows, {"mark": "bar", "encoding": encoding})


def _curves(rows: list[dict[str, Any]]) -> Spec:
    encoding = {
        "x": {
            "field": "lambda",
            "type": "ordinal",
            "sort": ORDER,
            "title": "lambda of sparsegen (sparser to the right)",
            "axis": {"labelAngle": 0},
        },
        "y": {"field": "value", "type": "quantitative", "title": "mean over texts"},
        "strokeDash": {"field": "of", "type": "nominal", "legend": None},
    }
    title = "Attention and input importance, and what ties leave room for"
    return _spec(title, rows, {"mark": {"type": "line", "point": True}, "encoding": encoding})

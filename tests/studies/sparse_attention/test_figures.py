"""The figures: their points are means of the records, and they are drawn into three files each."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.studies.sparse_attention.claims import groups_of, mean, over_seeds
from faithbench.studies.sparse_attention.figures import figures_of, write_figures
from tests.studies.sparse_attention.made import made_study


def test_points_are_means_over_texts_and_seeds() -> None:
    records = made_study(seeds=2)
    groups = groups_of(records)
    figures = figures_of(groups)
    points = figures["figure-3"]["data"]["values"]
    assert len(points) == 3 * 4, "softmax has no lambda"
    found = {(point["lambda"], point["of"]): point["value"] for point in points}
    pair = groups[0].strengths[0.9]
    tau = mean(over_seeds(pair, "tau_gradient_x"))
    assert found["0.9", "tau-b with the gradient"] == pytest.approx(tau, abs=1e-4)
    bars = figures["figure-1"]["data"]["values"]
    assert [bar["lambda"] for bar in bars] == ["softmax"] * 2 + ["-1"] * 2 + ["0"] * 2 + ["0.9"] * 2
    assert len(figures["figure-2"]["data"]["values"]) == 4 * 3


def test_files_are_vega_lite_svg_and_png(tmp_path: Path) -> None:
    names = write_figures(made_study(), tmp_path / "out")
    assert names == ("figure-1", "figure-2", "figure-3")
    for name in names:
        spec = json.loads((tmp_path / "out" / f"{name}.vl.json").read_text())
        assert spec["$schema"].endswith("vega-lite/v5.json")
        assert (tmp_path / "out" / f"{name}.svg").read_text().startswith("<svg")
        assert (tmp_path / "out" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


def test_without_the_extra_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(FaithbenchError, match="faithbench\\[page\\]"):
        write_figures(made_study(), tmp_path)

"""Charts of a page as Vega-Lite: as JSON, SVG and PNG beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import replace_file

Spec = dict[str, Any]
SCALE = 2
"""Pixels of the PNG per point of the chart."""


def write_charts(specs: Mapping[str, Spec], folder: Path) -> None:
    """Write charts under their names; the same ones give the same bytes."""
    try:
        import vl_convert
    except ImportError as error:
        raise FaithbenchError(
            "figures need vl-convert-python, which is not installed; "
            "run: pip install 'faithbench[page]'"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in specs.items():
        replace_file(folder / f"{name}.vl.json", (json.dumps(spec, indent=1) + "\n").encode())
        replace_file(folder / f"{name}.svg", vl_convert.vegalite_to_svg(spec).encode())
        replace_file(folder / f"{name}.png", vl_convert.vegalite_to_png(spec, scale=SCALE))

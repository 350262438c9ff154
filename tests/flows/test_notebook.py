"""The notebook of docs/ runs from top to bottom, and is kept without outputs."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.paths import ROOT

PATH = ROOT / "docs" / "first-steps.ipynb"


def test_outputs_are_not_kept() -> None:
    cells = [cell for cell in nbformat.read(PATH, 4).cells if cell.cell_type == "code"]
    assert cells and all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_the_notebook_runs_and_shows_its_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    book = nbformat.read(PATH, 4)
    NotebookClient(
        book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    outputs: list[Any] = [o for cell in book.cells for o in cell.get("outputs", ())]
    pages = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    text, table, compared, scored = pages
    assert "<b>attn-lrp</b>: negative (p = 0." in text and "background: #" in text
    assert all(f"<th>{name}</th>" in table for name in ("attn-lrp", "attention", "random"))
    assert re.search(r"AOPC ↑</td><td>(<b>)?-?\d\.\d{3} ", table)
    assert "<b>AOPC (faithfulness, higher is better)</b>" in compared
    assert "Wilcoxon signed-rank, Holm over 6:" in compared
    assert "<th>length</th>" in scored
    (picture,) = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert base64.b64decode(picture)[:4] == b"\x89PNG"
    lines = "".join(o["text"] for o in outputs if o.output_type == "stream").splitlines()
    assert len([line for line in lines if re.match(r"[+-]\d\.\d{3}  \w", line)]) >= 5
    assert not (tmp_path / "results").exists()

"""The code of docs/python.md runs as it stands, and shows every public name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import faithbench as fb
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


def test_the_page_shows_every_name() -> None:
    code = "\n".join(BLOCKS)
    assert [name for name in fb.__all__ if f"fb.{name}" not in code] == []


def test_the_blocks_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for block in BLOCKS:
        # A reader's file does not have this one's `from __future__ import annotations`.
        exec(compile(block, "docs/python.md", "exec", dont_inherit=True), names)
    said = capsys.readouterr().out
    assert said.startswith(f"{fb.__version__}\n('negative', 'positive') 6 ")
    assert said.endswith("no explainer named 'leave-on-out'; did you mean 'leave-one-out'?\n")
    assert names["explanation"].said == "negative"
    assert names["result"].labels == ("lrp-mask", "attention", "random", "human")
    assert names["scored"].labels == ("word-length", "random", "human")
    assert names["of_captum"].labels == ("captum-ig", "human")
    assert names["of_shap"].labels == ("shap", "human")
    assert names["of_inseq"].labels == ("inseq", "human")
    random = names["result"].records["random"].metrics["aopc"].mean
    for label in ("of_captum", "of_shap"):  # both find what the model reads
        assert names[label].outcomes[0].record.metrics["aopc"].mean > random
    assert names["record"] == names["kept"].records["attention"]
    assert names["mine"].labels[0] == "keep-one"
    # Attention's scores are shares: the highest lies between a token's even share and 1.
    assert 0 < names["extra"].records["attention"].metrics["top_score"].mean < 1
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"results", "mine.py"}

"""`faithbench cite`: of records, of folders of them, and of names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from faithbench.cli.cite import cite
from faithbench.core.errors import FaithbenchError
from tests.support.paths import ROOT

RECORDS = ROOT / "leaderboard" / "records" / "sst2-bundled"


def keys(text: str) -> list[str]:
    return re.findall(r"^@\w+\{(\w+),$", text, flags=re.M)


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    cite(explainer="lime:samples=9,gae,random", task="sst2,multirc", metrics="aopc,seconds")
    out = capsys.readouterr()
    assert keys(out.out) == [
        "chefer2021generic", "deyoung2020eraser", "faithbench", "khashabi2018multirc",
        "nguyen2018comparing", "ribeiro2016should", "samek2017evaluating",
        "socher2013recursive", "song2024better",
    ]  # fmt: skip
    assert out.err == "no paper to cite is known for: explainer random, metric seconds\n"


def test_a_record_and_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    record = next(RECORDS.rglob("attn-lrp-*.json"))
    cite([str(record)])
    one = keys(capsys.readouterr().out)
    assert {"achtibat2024attnlrp", "faithbench", "socher2013recursive"} <= set(one)
    assert "deyoung2020eraser" in one and "zeiler2014visualizing" not in one
    cite([str(record), str(RECORDS)])
    many = keys(capsys.readouterr().out)
    assert set(one) < set(many) and many == sorted(set(many))


def test_a_plugin_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cited_plugin.py"
    path.write_text(
        "from dataclasses import dataclass\nfrom faithbench import explainer\n\n"
        '@explainer("cited", papers=("@misc{own2026,\\n  title = {Own},\\n}",))\n'
        "@dataclass(frozen=True)\nclass Cited:\n"
        '    """Cited."""\n\n    def __call__(self, session, batch):\n        return batch.ids\n'
    )
    cite(explainer="cited", plugin=[path])
    assert keys(capsys.readouterr().out) == ["faithbench", "own2026"]


def test_nothing_to_cite(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="nothing to cite; name records, or --explainer"):
        cite()
    with pytest.raises(FaithbenchError, match=f"no record in {tmp_path}; name the folder"):
        cite([str(tmp_path)])

"""What the README shows works as it is written."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from faithbench.core.types import Case, Outputs
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.kinds import CaseMetric
from faithbench.metrics.registry import metrics_by
from faithbench.testing.conformance import check_explainer
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_the_findings_and_the_ranking_are_those_of_the_board() -> None:
    board = (ROOT / "leaderboard" / "README.md").read_text(encoding="utf-8")
    section = board.split("## Faithfulness\n")[1].split("\nRank: ")[0]
    lines = [line for line in section.splitlines() if line]
    assert len(lines) > 10, "the board has findings and a ranking"
    missing = [line for line in lines if line not in README.splitlines()]
    assert not missing, "copy the first section of leaderboard/README.md"
    heads = (ROOT / "leaderboard" / "heads.md").read_text(encoding="utf-8")
    (summary,) = [line for line in heads.splitlines() if line.startswith("Of ")]
    assert " ".join(summary.split()) in " ".join(README.split())


def test_the_plugin_is_short_and_keeps_the_rules(tmp_path: Path) -> None:
    code = blocks("python")[0]
    assert len(code.splitlines()) < 25
    path = tmp_path / "mine.py"
    path.write_text(code)
    (chosen,) = find_explainers("drop-one:scale=2", [path])
    check_explainer(chosen.explainer, architectures=("bert",))


def test_the_task_file_is_short_and_loads(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    assert len(text.splitlines()) <= 15
    path = tmp_path / "reviews.toml"
    path.write_text(text)
    task = load_task(str(path))
    assert task.labels == ("negative", "positive")
    assert task.folder is not None and task.folder.splits == {"test": "test"}


def test_the_metric_gives_the_fall() -> None:
    names: dict[str, object] = {}
    exec(blocks("python")[1], names)
    (metric,) = metrics_by(names["drop_at_20"])
    assert isinstance(metric, CaseMetric)
    scores, places = np.arange(10.0), np.arange(1, 11)
    case = Case(scores, places, float(np.log(0.9)), np.zeros(12), places)
    assert metric.plan(case).tolist() == [[True] * 9 + [False] * 2 + [True]]
    outputs = Outputs(np.log([0.4]), np.array([False]))
    assert metric.value(case, outputs) == pytest.approx(0.5, abs=1e-12)

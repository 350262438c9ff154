"""Submissions run and scored from the command line: strangers apart, and one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.submission_run import check_command, run_command, score_command
from faithbench.core.errors import FaithbenchError
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.scaffold import new_submission

NOT_A_NUMBER = "        return [float('nan')] * len(example.tokens)\n"


def run(root: Path, *folders: str) -> None:
    run_command(
        folders=folders, root=root, task="sst2", model=None, data=None, source="bundled",
        split="test", limit=2, limits=Limits(seconds=300), strict=False,
    )  # fmt: skip


def hostile(root: Path, name: str, body: str) -> None:
    path = new_submission(root, name, "plugin") / "explainer.py"
    head, _, _ = path.read_text().partition("        n = len")
    path.write_text(head + body)


def test_strangers_are_run_one_after_the_other(tmp_path: Path, capsys) -> None:
    hostile(tmp_path, "a-nan", NOT_A_NUMBER)
    folder = new_submission(tmp_path, "c-fine", "plugin")
    new_submission(tmp_path, "d-scores", "attributions")
    with pytest.raises(FaithbenchError, match="1 of 2 submissions failed"):
        run(tmp_path, "all")
    said = " ".join(capsys.readouterr().out.split())
    assert "enforced: 300 s" in said
    assert (
        "failed: submission a-nan stopped: explainer 'a-nan' gave a score that is not finite"
    ) in said
    (path,) = folder.glob("records/*/*/*.json")
    assert [p.name for p in path.parent.iterdir() if p.suffix != ".json"] == [
        f"{path.stem}.rows.jsonl"
    ]
    record = read(path)
    assert (record.explainer.name, record.explainer.package) == ("c-fine", "submission")
    assert set(record.explainer.assets) == {"explainer.py"}
    assert record.cost.forwards_per_example is None
    assert record.timing.seconds_median is None
    assert record.timing.seconds_total > 0
    assert record.metrics["tau_loo"].mean == pytest.approx(1, abs=0.01)  # it leaves one out
    assert record.metrics["max_sensitivity"].skipped == 2
    assert all(row.forwards is None for row in read_rows(path.with_suffix(".rows.jsonl")))
    assert not list(tmp_path.glob("a-*/records"))
    check_command(folders=[str(folder)], root=tmp_path, data=None, sample=2, no_model=False)
    assert "c-fine: fine, 1 record" in capsys.readouterr().out


def test_each_kind_has_its_command(tmp_path: Path, capsys) -> None:
    plugin = new_submission(tmp_path, "my-x", "plugin")
    with pytest.raises(FaithbenchError, match="1 of 1 submissions failed"):
        score_command(folders=[str(plugin)], root=tmp_path, task=None, data=None)
    assert "is of kind 'plugin'; use `faithbench submission run`" in capsys.readouterr().out
    scores = new_submission(tmp_path, "my-w", "attributions")
    with pytest.raises(FaithbenchError):
        score_command(folders=[str(scores)], root=tmp_path, task="imdb", data=None)
    assert "has no scores of task 'imdb', only of sst2" in capsys.readouterr().out


def test_faults_are_lines_and_the_check_fails(tmp_path: Path, capsys) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "test_explainer.py").unlink()
    with pytest.raises(FaithbenchError, match="1 of 1 submissions have faults"):
        check_command(folders=["all"], root=tmp_path, data=None, sample=8, no_model=True)
    assert capsys.readouterr().out.splitlines() == [
        "my-x: test_explainer.py: file: is missing; `faithbench submission new` writes one",
        "not checked: what needs the model (--no-model)",
    ]

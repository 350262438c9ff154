"""Submissions run and scored from the command line: untrusted code apart, one after the other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faithbench.cli import submission_run
from faithbench.cli.submission import check_submissions
from faithbench.cli.submission_run import (
    regenerate_submissions,
    run_submissions,
    score_submissions,
)
from faithbench.core.errors import FaithbenchError
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.submissions.scaffold import new_submission
from tests.support.submissions import N

NOT_A_NUMBER = "        return [float('nan')] * len(example.tokens)\n"


def run_all(root: Path, *folders: str) -> None:
    run_submissions(
        folders=list(folders), root=root, task="sst2", source="bundled", limit=2, seconds=300
    )


def hostile(root: Path, name: str, body: str) -> None:
    path = new_submission(root, name, "plugin") / "explainer.py"
    head, _, _ = path.read_text().partition("        n = len")
    path.write_text(head + body)


def test_strangers_are_run_one_after_the_other(tmp_path: Path, capsys) -> None:
    hostile(tmp_path, "a-nan", NOT_A_NUMBER)
    folder = new_submission(tmp_path, "c-fine", "plugin")
    new_submission(tmp_path, "d-scores", "attributions")
    with pytest.raises(FaithbenchError, match="1 of 2 submissions failed"):
        run_all(tmp_path, "all")
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
    check_submissions(folders=[str(folder)], root=tmp_path, sample=2)
    assert "c-fine: fine, 1 record" in capsys.readouterr().out


def test_each_kind_has_its_command(tmp_path: Path, capsys) -> None:
    plugin = new_submission(tmp_path, "my-x", "plugin")
    with pytest.raises(FaithbenchError, match="1 of 1 submissions failed"):
        score_submissions(folders=[str(plugin)], root=tmp_path)
    assert "is of kind 'plugin'; use `faithbench submission run`" in capsys.readouterr().out
    scores = new_submission(tmp_path, "my-w", "attributions")
    with pytest.raises(FaithbenchError):
        score_submissions(folders=[str(scores)], root=tmp_path, task="imdb")
    assert "has no scores of task 'imdb', only of sst2" in capsys.readouterr().out


def test_what_fails_is_a_line_and_the_others_go_on(
    scored: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(scored, tmp_path / "my-w")
    new_submission(tmp_path, "b-broken", "plugin")
    (tmp_path / "b-broken" / "entry.toml").write_text("nonsense")
    for name in ("c-scores", "d-scores"):
        new_submission(tmp_path, name, "attributions")
    new_submission(tmp_path, "e-plugin", "plugin")
    asked = []

    def score(*, folders: list[str], task: str, **_: object) -> None:
        asked.append((Path(folders[0]).name, task))
        if folders[0].endswith("c-scores"):
            raise FaithbenchError("1 of 1 submissions failed; see above")

    def run(*, folders: list[str], task: str, limit: int, strict: bool, **_: object) -> None:
        asked.append(([Path(folder).name for folder in folders], task, limit, strict))

    monkeypatch.setattr(submission_run, "score_submissions", score)
    monkeypatch.setattr(submission_run, "run_submissions", run)
    with pytest.raises(FaithbenchError, match="not all submissions could be measured"):
        regenerate_submissions(root=tmp_path, limit=N, strict=True)
    assert asked == [("c-scores", "sst2"), ("d-scores", "sst2"), (["e-plugin"], "sst2", N, True)]
    said = capsys.readouterr().out
    assert "failed: b-broken: submission b-broken, file entry.toml is not valid TOML" in said
    assert "my-w, sst2: up to date" in said and "e-plugin, sst2: to be measured" in said


def test_nothing_due_is_no_failure(scored: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(scored, tmp_path / "my-w")
    regenerate_submissions(root=tmp_path, limit=N)
    assert capsys.readouterr().out == "my-w, sst2: up to date\n"

"""`submission regenerate`: what needs measuring is measured, and a failure stops no other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faithbench.cli import submission_ci as upkeep
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.scaffold import new_submission
from tests.support.submissions import N


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

    monkeypatch.setattr(upkeep, "score_command", score)
    monkeypatch.setattr(upkeep, "run_command", run)
    with pytest.raises(FaithbenchError, match="not all submissions could be measured"):
        upkeep.regenerate_command(root=tmp_path, task="sst2", limit=N, limits=Limits(), strict=True)
    assert asked == [("c-scores", "sst2"), ("d-scores", "sst2"), (["e-plugin"], "sst2", N, True)]
    said = capsys.readouterr().out
    assert "failed: b-broken: submission b-broken, file entry.toml is not valid TOML" in said
    assert "my-w, sst2: up to date" in said and "e-plugin, sst2: to be measured" in said


def test_nothing_due_is_no_failure(scored: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(scored, tmp_path / "my-w")
    upkeep.regenerate_command(root=tmp_path, task="sst2", limit=N, limits=Limits(), strict=False)
    assert capsys.readouterr().out == "my-w, sst2: up to date\n"


def test_a_submission_without_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"no submission gone in .*submissions; give --root"):
        upkeep.preview_command(["submissions/gone"], tmp_path / "submissions", Path("board"))


def test_removed_submissions_are_left_out_where_asked(tmp_path: Path, capsys) -> None:
    (tmp_path / "a").mkdir()
    paths = ["submissions/a/entry.toml\n", "submissions/gone/entry.toml\n"]
    upkeep.scope_command(paths, tmp_path, existing=True)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a")]
    upkeep.scope_command(paths, tmp_path, existing=False)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "gone")]

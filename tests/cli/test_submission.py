"""What is measured again, and what is left alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from faithbench.cli import submission_ci as upkeep
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.scaffold import new_submission
from faithbench.submissions.status import needed_records
from tests.support.submissions import N


def current(folder: Path, limit: int | None = N) -> list[bool]:
    return [one.current for one in needed_records(folder, "sst2", limit)]


def test_a_record_of_these_very_files_is_not_made_again(scored: Path) -> None:
    assert current(scored) == [True]


def test_other_scores_or_examples_are_measured_again(copy: Callable[[], Path]) -> None:
    folder = copy()
    path = folder / "scores" / "sst2.jsonl"
    before = path.read_text()
    path.write_text(before.replace("1.0", "1.5", 1))
    assert current(folder) == [False]
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    assert current(folder) == [False]
    path.write_text(before)
    assert current(folder) == [True]
    (record,) = folder.glob("records/*/*/*.json")
    record.write_text("{")
    assert current(folder) == [False]


def test_other_weights_are_measured_again(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("faithbench.submissions.status.sha256_of_weights", lambda _: "0" * 64)
    assert current(scored) == [False]


def test_a_plugin_without_a_record_is_due(tmp_path: Path) -> None:
    assert current(new_submission(tmp_path, "my-x", "plugin")) == [False]


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

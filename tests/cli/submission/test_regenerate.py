"""Submissions measured anew: what is due is measured, asked on other sentences, and recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faithbench.cli.options import PASSED
from faithbench.cli.submission import held_out as asking
from faithbench.cli.submission import regenerate
from faithbench.cli.submission.regenerate import regenerate_submissions
from faithbench.cli.submission.run import Measured
from faithbench.core.errors import FaithbenchError
from faithbench.records.passed import PassedCheck, content_digest, read_passed, write_passed
from faithbench.submissions.held_out import Held
from faithbench.submissions.scaffold import new_submission
from tests.support.submissions import N, change_row, record_of, rows_of


def put_passed(folder: Path, file: Path) -> None:
    """Record what lies in a folder as measured here."""
    paths = [path.relative_to(folder).as_posix() for path in folder.glob("records/*/*/*.json")]
    check = PassedCheck(content=content_digest(folder), records=tuple(paths))
    write_passed(file, {folder.name: check})


def test_what_fails_is_a_line_and_the_others_go_on(
    scored: Path, tmp_path: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, file = tmp_path / "submissions", tmp_path / PASSED
    shutil.copytree(scored, root / "my-w")
    put_passed(root / "my-w", file)
    former = read_passed(file)
    new_submission(root, "b-broken", "plugin")
    (root / "b-broken" / "entry.toml").write_text("nonsense")
    for name in ("c-scores", "d-scores"):
        new_submission(root, name, "attributions")
    for name in ("e-plugin", "f-behind"):
        new_submission(root, name, "plugin")
    asked = []

    def score(folders: list[str], task: str, **_: object) -> Measured:
        asked.append((Path(folders[0]).name, task))
        return Measured((), int(folders[0].endswith("c-scores")), 1)

    def run(folders: list[str], task: str, *, limit: int, strict: bool, **_: object) -> Measured:
        asked.append((Path(folders[0]).name, task, limit, strict))
        return Measured((), 0, 1)

    monkeypatch.setattr(regenerate, "score_files", score)
    monkeypatch.setattr(regenerate, "run_plugins", run)
    held = {"e-plugin": Held(0.5, 0.4, 0.5, 0.001), "f-behind": Held(0.9, 0.1, 1e-6, 0.001)}
    monkeypatch.setattr(asking, "draw_trial", lambda *_: "a trial")
    monkeypatch.setattr(asking, "ask", lambda _, folder, *rest: held[folder.name])
    with pytest.raises(FaithbenchError, match="not all submissions could be measured"):
        regenerate_submissions(root=root, limit=N, strict=True)
    scored_first = [("c-scores", "sst2"), ("d-scores", "sst2")]
    assert asked == [*scored_first, ("e-plugin", "sst2", N, True), ("f-behind", "sst2", N, True)]
    said = capsys.readouterr().out
    assert "failed: b-broken: submission b-broken, file entry.toml is not valid TOML" in said
    assert "my-w, sst2: up to date" in said and "e-plugin, sst2: to be measured" in said
    assert "e-plugin: gain +0.500 in its record, +0.400 held out: passes" in said
    assert "failed: f-behind: gain +0.900 in its record, +0.100 held out: falls behind" in said
    passed = read_passed(file)
    assert sorted(passed) == ["d-scores", "e-plugin", "my-w"]
    assert passed["my-w"] == former["my-w"] and passed["e-plugin"].records == ()


def test_nothing_due_is_no_failure_and_writes_nothing(scored: Path, tmp_path: Path, capsys) -> None:
    root, file = tmp_path / "submissions", tmp_path / "passed.json"
    shutil.copytree(scored, root / "my-w")
    put_passed(root / "my-w", file)
    before = file.stat().st_mtime_ns
    regenerate_submissions(root=root, limit=N, passed=file)
    assert capsys.readouterr().out == "my-w, sst2: up to date\n"
    assert file.stat().st_mtime_ns == before


def test_a_forged_record_that_adds_up_is_measured_again(scored: Path, tmp_path: Path) -> None:
    root, file = tmp_path / "submissions", tmp_path / PASSED
    folder = Path(shutil.copytree(scored, root / "my-w"))
    honest = rows_of(folder).read_bytes()
    change_row(folder, lambda row: row["values"].update(lodds=0.777))
    regenerate_submissions(root=root, limit=N)
    assert rows_of(folder).read_bytes() == honest
    path = record_of(folder).relative_to(folder).as_posix()
    assert read_passed(file)["my-w"] == PassedCheck(content=content_digest(folder), records=(path,))
    shutil.rmtree(folder)
    regenerate_submissions(root=root, limit=N)
    assert read_passed(file) == {}, "a withdrawn submission is forgotten"

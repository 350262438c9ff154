"""Submissions run and scored from the command line: untrusted code apart, one after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from faithbench.cli.options import PASSED
from faithbench.cli.submission import run as run_module
from faithbench.cli.submission.commands import check_submissions
from faithbench.cli.submission.run import (
    Measured,
    regenerate_submissions,
    run_submissions,
    score_submissions,
)
from faithbench.core.errors import FaithbenchError
from faithbench.records.passed import PassedCheck, content_digest, read_passed, write_passed
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.submissions.sandbox.messages import NEEDED, Confined, Promise
from faithbench.submissions.scaffold import new_submission
from tests.support.submissions import N, change_row, record_of, rows_of

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
    new_submission(root, "e-plugin", "plugin")
    asked = []

    def score(folders: list[str], task: str, **_: object) -> Measured:
        asked.append((Path(folders[0]).name, task))
        return Measured((), int(folders[0].endswith("c-scores")), 1)

    def run(folders: list[str], task: str, *, limit: int, strict: bool, **_: object) -> Measured:
        asked.append((Path(folders[0]).name, task, limit, strict))
        return Measured((), 0, 1)

    monkeypatch.setattr(run_module, "_score_attributions", score)
    monkeypatch.setattr(run_module, "_run_plugins", run)
    with pytest.raises(FaithbenchError, match="not all submissions could be measured"):
        regenerate_submissions(root=root, limit=N, strict=True)
    assert asked == [("c-scores", "sst2"), ("d-scores", "sst2"), ("e-plugin", "sst2", N, True)]
    said = capsys.readouterr().out
    assert "failed: b-broken: submission b-broken, file entry.toml is not valid TOML" in said
    assert "my-w, sst2: up to date" in said and "e-plugin, sst2: to be measured" in said
    passed = read_passed(file)
    assert sorted(passed) == ["d-scores", "e-plugin", "my-w"]
    assert passed["my-w"] == former["my-w"] and passed["e-plugin"].records == ()


def reporter(**options: bool) -> Callable[[Confined], None]:
    chosen = {"strict": False, "allow_unconfined": False, **options}
    return run_module.limits_reporter(Console(), **chosen)


def test_where_files_or_network_are_open_nothing_is_run_unless_told_so() -> None:
    whole = Confined(holds=tuple(Promise), missing=())
    reporter()(whole)
    slower = Confined(holds=NEEDED, missing=(Promise.MEMORY,))
    reporter()(slower)
    with pytest.raises(FaithbenchError, match="was not run: --strict"):
        reporter(strict=True)(slower)
    for promise in NEEDED:
        rest = tuple(other for other in Promise if other != promise)
        confined = Confined(holds=rest, missing=(promise,))
        with pytest.raises(FaithbenchError, match=f"enforced here: {promise}; .*unconfined if"):
            reporter()(confined)
        reporter(allow_unconfined=True)(confined)


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

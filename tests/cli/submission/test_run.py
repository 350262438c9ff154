"""Submissions run and scored from the command line: untrusted code apart, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from faithbench.cli.submission import run as run_module
from faithbench.cli.submission.commands import check_submissions
from faithbench.cli.submission.run import (
    run_submissions,
    score_submissions,
)
from faithbench.core.errors import FaithbenchError
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.submissions.sandbox.messages import NEEDED, Confined, Promise
from faithbench.submissions.scaffold import new_submission

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
    stray = folder / "records" / "sst2" / "a" / ".0123abcd-4567.tmp"  # as a killed one leaves it
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half")
    with pytest.raises(FaithbenchError, match="1 of 2 submissions failed"):
        run_all(tmp_path, "all")
    said = " ".join(capsys.readouterr().out.split())
    assert "enforced: 300 s" in said
    assert (
        "failed: submission a-nan stopped: explainer 'a-nan' gave a score that is not finite"
    ) in said
    assert not stray.exists()
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

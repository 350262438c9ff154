"""Checks of a submission: a measured one is fine, and stray files are found and named."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import faithbench
from faithbench.submissions.check import Checks, check_submission
from tests.support.submissions import Copy, change_record, faults_of


def test_what_was_measured_is_fine(scored: Path, checks: Checks, checks_with_model: Checks) -> None:
    assert check_submission(scored, checks).faults == ()
    assert check_submission(scored, checks_with_model).faults == ()
    assert check_submission(scored, checks).records == 1


def test_data_that_are_not_here_are_asked_for(copy: Copy, checks: Checks) -> None:
    folder = copy()
    entry = folder / "entry.toml"
    entry.write_text(entry.read_text().replace('"bundled"', '"folder"'))
    change_record(folder, lambda record: record["task"].update(source="folder"))
    assert "no data folder, give --data" in faults_of(folder, checks)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("scores/agnews.jsonl", "", "is not named in entry.toml"),
        ("explainer.py", "", "explainer.py: file: does not belong to attributions"),
        ("records/a-b/c-d/x.rows.jsonl", "", "is without its record"),
        ("records/a-b/c-d/x.json", "{}", "has no schema|cannot|schema"),
        ("records/a-b/c-d/x.json", "[" * 99_999, "not valid JSON|nested"),
        ("records/a-b/c-d/x.json", "\x80\x04pickle", "not valid JSON|schema"),
        ("records/a-b/c-d/x.json", " " * 300_000, "has more than 200000 bytes"),
        ("x.pkl", "", "does not belong there"),
    ],
)
def test_stray_files_are_found(
    copy: Copy, checks: Checks, path: str, text: str, message: str
) -> None:
    folder = copy()
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    assert re.search(message, faults_of(folder, checks))


def test_checking_writes_nothing(copy: Copy, checks: Checks) -> None:
    folder = copy()
    change_record(folder, lambda record: record["task"].update(n=9))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    check_submission(folder, checks)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_without_a_model_nothing_heavy_is_loaded(scored: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from faithbench.submissions.check import Checks, check_submission
print(check_submission(Path({str(scored)!r}), Checks(None, Path({str(tmp_path)!r}))))
print(sorted({{"torch", "transformers", "scipy.stats", "sklearn"}} & set(sys.modules)))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(faithbench.__file__).parents[1])},
    )  # fmt: skip
    assert found.stdout.splitlines() == ["Checked(records=1, faults=())", "[]"]

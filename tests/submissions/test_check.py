"""Checks of a submission: a measured one is fine, and stray files are found and named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import faithbench
from faithbench.records.record import read
from faithbench.submissions import record_checks
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.scaffold import new_submission
from tests.support.stores import store
from tests.support.submissions import Copy, change_record, faults_of, record_of


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
        ("scores/sst2.jsonl.gz", "", r"scores/sst2.jsonl: file: is there and .*.gz too; keep one"),
        ("scores/sst2.jsonl", "", "content: scores/sst2.jsonl, line 1: the file is empty; write a"),
        (
            "README.md",
            "one\ntwo \u202e\n",
            "README.md, line 2 has the .* character U\\+202E; remove",
        ),
        ("LICENSE", " " * 200_001, "LICENSE: file: has more than 200000 bytes; shorten it"),
    ],
)
def test_stray_files_are_found(
    copy: Copy, checks: Checks, path: str, text: str, message: str
) -> None:
    folder = copy()
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    assert re.search(message, faults_of(folder, checks))


def test_code_and_entries_show_all_that_they_say(tmp_path: Path, checks: Checks) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    code, entry = folder / "explainer.py", folder / "entry.toml"
    honest = code.read_text()
    code.write_text(honest.replace("scale", "sc\u0430le"))
    name = r"explainer.py, line 14 has the name sc\u0430le, which is not plain ASCII; rename it"
    assert faults_of(folder, checks) == f"explainer.py: content: {name}; then check again"
    code.write_text(honest)
    lines = entry.read_text().splitlines()
    entry.write_text("\n".join([*lines[:2], "# \u2067 an aside", *lines[2:]]))
    assert faults_of(folder, checks) == (
        "file entry.toml, line 3 has the control or invisible character U+2067; remove it; then "
        "check again"
    )
    entry.write_text("\n".join([*lines, "scale = 1.0\nscale = 2.0\n"]))
    said = faults_of(folder, checks)
    assert "file entry.toml is not valid TOML for an entry: Cannot overwrite a value (at li" in said


def test_a_key_twice_and_too_many_values_are_refused(
    copy: Copy, checks: Checks, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy()
    text = record_of(folder).read_text()
    record_of(folder).write_text(text.replace('"n":', '"n": 9, "n":', 1))
    assert "is not valid JSON: key 'n' appears twice; fix" in faults_of(folder, checks)
    record_of(folder).write_text(text)
    monkeypatch.setattr(record_checks, "MAX_VALUES", 10)
    assert "has more than 10 values; measure fewer examples" in faults_of(folder, checks)


def test_examples_must_be_those_of_the_boards_table(
    copy: Copy, checks: Checks, tmp_path: Path
) -> None:
    folder, board = copy(), tmp_path / "board"
    own = record_of(folder)
    place = board / own.parent.relative_to(folder / "records")
    shutil.copytree(own.parent, place)
    assert check_submission(folder, replace(checks, board=board)).faults == ()
    scores = folder / "scores" / "sst2.jsonl"
    scores.write_text("".join(scores.read_text().splitlines(keepends=True)[:-1]))
    said = faults_of(folder, replace(checks, board=board))
    assert "scores/sst2.jsonl: examples: the board's table has 4 examples: 1 is missing (b" in said
    # A board whose table has fewer examples than the record.
    shutil.rmtree(board)
    record = read(own)
    store(place, "lime-11111111", {"aopc": [0.5]}, ids=["bundled-sst2-999"],
          task=vars(record.task) | {"n": 1}, model={"name": record.model.name})  # fmt: skip
    (fault,) = check_submission(folder, replace(checks, board=board)).faults[:1]
    assert fault.problem == (
        "the board's table has 1 examples: 1 is missing (bundled-sst2-999) and 3 are too many "
        + fault.problem[fault.problem.rindex("(") :]
    )


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
from faithbench.submissions import record_checks
from faithbench.submissions.check import Checks, check_submission
print(check_submission(Path({str(scored)!r}), Checks(None, Path({str(tmp_path)!r}))))
print(sorted({{"torch", "transformers", "scipy.stats", "sklearn"}} & set(sys.modules)))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(faithbench.__file__).parents[1])},
    )  # fmt: skip
    assert found.stdout.splitlines() == ["Checked(records=1, faults=())", "[]"]

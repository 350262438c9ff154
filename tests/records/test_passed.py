"""Passed checks: a board shows a submission only while its content is what passed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.records.passed import (
    Accepted,
    PassedCheck,
    accepted_submissions,
    content_digest,
    read_passed,
    write_passed,
)
from tests.support.records import stored_json

RECORD = "records/sst2-bundled/tiny-000000/mine-11111111.json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A submission that passed its check, in a folder of submissions."""
    folder = tmp_path / "submissions" / "mine"
    (folder / RECORD).parent.mkdir(parents=True)
    (folder / RECORD).write_text("{}")
    (folder / "entry.toml").write_text("")
    check = PassedCheck(content=content_digest(folder), records=(RECORD,))
    write_passed(tmp_path / "passed.json", {"mine": check})
    return folder


def lines(folder: Path) -> tuple[str, ...]:
    submitted = accepted_submissions(folder.parent, folder.parents[1] / "passed.json")
    assert [one.folder for one in submitted.accepted] in ([], [folder])
    return submitted.left_out


def test_what_passed_is_accepted_with_its_measured_records(folder: Path) -> None:
    (folder.parent / ".gitkeep").write_text("")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("never read")
    submitted = accepted_submissions(folder.parent, folder.parents[1] / "passed.json")
    assert submitted.accepted == (Accepted(folder, (RECORD,)),) and submitted.left_out == ()
    assert accepted_submissions(folder / "none", folder / "none.json").accepted == ()


@pytest.mark.parametrize("path", ["entry.toml", RECORD, "explainer.py", "records/a/b/c.json"])
def test_other_content_is_left_out(folder: Path, path: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("changed")
    assert lines(folder) == (
        "submissions/mine: left out, its files are not those that passed their check; "
        "`faithbench submission regenerate` measures and checks it",
    )


def test_what_no_check_has_seen_is_left_out(folder: Path) -> None:
    (folder.parent / "new").mkdir()
    (folder.parent / "x.json").write_text("{}")
    (folder.parent / "é\n").symlink_to(folder)
    assert lines(folder) == (
        "submissions/new: left out, no check of it has passed; `faithbench submission regenerate` "
        "measures and checks it",
        "submissions/x.json: left out, it is not a folder",
        "submissions/é: left out, it is not a folder",
    )


def test_links_and_pipes_are_left_out_unopened(folder: Path) -> None:
    os.mkfifo(folder / "x.json")
    assert lines(folder) == ("submissions/mine: left out, x.json in it is not a plain file",)
    (folder / "x.json").unlink()
    (folder / "entry.toml").rename(folder.parents[1] / "outside")
    (folder / "entry.toml").symlink_to(folder.parents[1] / "outside")
    assert lines(folder) == ("submissions/mine: left out, entry.toml in it is not a plain file",)


@pytest.mark.parametrize("name", [b"\xff.py", b"a\n%s b"])
def test_names_that_could_pass_for_others_are_left_out(folder: Path, name: bytes) -> None:
    """Names of files are bytes, and a line break in one made it look like two files."""
    if b"%s" in name:
        name %= file_sha256(folder / "entry.toml").encode()
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("")
    (line,) = lines(folder)
    assert re.fullmatch(r"submissions/mine: left out, the name of .* in it is not plain", line)


def test_a_file_from_before_there_was_a_sha256_is_read(folder: Path) -> None:
    file = folder.parents[1] / "passed.json"
    content = stored_json(file)
    assert content["schema"] == 2
    file.write_text(json.dumps(content | {"schema": 1}))
    assert read_passed(file) == {
        "mine": PassedCheck(content=content_digest(folder), records=(RECORD,))
    }


@pytest.mark.parametrize(
    ("old", "new"), [("mine-1", "mine-0"), ('"mine"', '"mind"'), (": 2", ": 1"), ("  ", "")]
)
def test_a_changed_file_is_refused(folder: Path, old: str, new: str) -> None:
    file = folder.parents[1] / "passed.json"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    with pytest.raises(FaithbenchError, match="its content does not match its sha256; restore"):
        read_passed(file)


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 1}',
        '{"schema": 1, "passed": {"A b": {"content": "", "records": []}}}',
        '{"schema": 1, "passed": {}, "passed": {}}',
        '{"schema": 1, "passed": {"a": {"content": "00", "records": []}}}',
        '{"schema": 1, "passed": {"a": {"content": "%s", "records": ["../x.json"]}}}' % ("0" * 64),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "passed.json").write_text(text)
    with pytest.raises(FaithbenchError, match="cannot read the passed checks in ") as caught:
        read_passed(tmp_path / "passed.json")
    assert "\n" not in str(caught.value)

"""Names and files of a submission: whatever could leave its folder is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.layout import check_name, files_of

HOSTILE = [
    "", ".", "..", "../x", "a/b", "/etc", "a\\b", "C:", "x.", "x ", " x", "-x", "x-", "X", "x_y",
    "con", "nul", "com1", "lpt9", "all", "records", "a" * 41, "x\n", "x\x00", "ü", "\u0430",
    "x\u200b", "\u202ex", "x\uff0fy", "~", "$HOME", "x;y", "random", "lrp-mask", "attention",
]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_that_could_leave_or_deceive_is_refused(name: str) -> None:
    with pytest.raises(FaithbenchError, match="submission name") as caught:
        check_name(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["a", "7", "my-explainer", "x" * 40, "saliency-times-idf"])
def test_a_plain_name_is_taken(name: str) -> None:
    assert check_name(name) == name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my-x"
    made.mkdir()
    (made / "entry.toml").write_text("")
    return made


def put(folder: Path, path: str) -> None:
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text("x")


def test_files_are_listed_by_their_paths(folder: Path) -> None:
    for path in ("explainer.py", "data/idf.json", "records/sst2-bundled/m-1/x-2.rows.jsonl"):
        put(folder, path)
    put(folder, "__pycache__/explainer.cpython-311.pyc")
    assert files_of(folder) == (
        "data/idf.json",
        "entry.toml",
        "explainer.py",
        "records/sst2-bundled/m-1/x-2.rows.jsonl",
    )


@pytest.mark.parametrize(
    "path",
    [
        "other.py", "explainer.pyc", ".hidden", "data/x.pkl", "data/x.py", "data/.json",
        "data/deep/x.json", "scores/sst2.json", "scores/x/sst2.jsonl", "records/x.json",
        "records/a/b/c/d.json", "records/a/b/x.json.", "records/a b/c/x.json", "setup.cfg",
        "conftest.py", "new/x.json", "data/x\u202e.json", "records/a/b/ü.json",
    ],
)  # fmt: skip
def test_a_file_out_of_place_is_named(folder: Path, path: str) -> None:
    put(folder, path)
    with pytest.raises(FaithbenchError, match="does not belong there") as caught:
        files_of(folder)
    assert "\n" not in str(caught.value)


def test_links_and_devices_are_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "explainer.py").symlink_to("/etc/passwd")
    with pytest.raises(FaithbenchError, match=r"'explainer\.py' is a symbolic link"):
        files_of(folder)
    (folder / "explainer.py").unlink()
    (folder / "records").symlink_to(tmp_path)
    with pytest.raises(FaithbenchError, match="'records' is a symbolic link"):
        files_of(folder)
    (folder / "records").unlink()
    os.mkfifo(folder / "README.md")
    with pytest.raises(FaithbenchError, match="is not a regular file"):
        files_of(folder)


def test_a_folder_that_is_a_link_or_absent_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(FaithbenchError, match="is a symbolic link"):
        files_of(tmp_path / "link")
    with pytest.raises(FaithbenchError, match="is not a folder"):
        files_of(tmp_path / "absent")


def test_names_that_differ_in_case_alone_are_refused(folder: Path) -> None:
    put(folder, "data/a.json")
    put(folder, "data/A.json")
    with pytest.raises(FaithbenchError, match="differ in case alone"):
        files_of(folder)


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(201):
        put(folder, f"data/{number}.txt")
    with pytest.raises(FaithbenchError, match="more than 200 files"):
        files_of(folder)

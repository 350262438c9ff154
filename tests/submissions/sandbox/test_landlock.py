"""Landlock: reads and writes where they are allowed, names where they are listed, nothing else."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from faithbench.submissions.sandbox import landlock
from faithbench.submissions.sandbox.landlock import landlock_version

linux = pytest.mark.skipif(not landlock_version(), reason="needs Landlock")
CODE = """
import sys
from pathlib import Path
from faithbench.submissions.sandbox.landlock import restrict_files
root = Path(sys.argv[1])
print("restricted", restrict_files(
    [root / "read", root / "one.txt", root / "gone"], [root / "write"], [root / "list"]
))
def attempt(name, do):
    try:
        do()
        print(name, "done")
    except OSError as error:
        print(name, type(error).__name__)
attempt("read", (root / "read" / "deep" / "a.txt").read_text)
attempt("read one", (root / "one.txt").read_text)
attempt("overwrite one", lambda: (root / "one.txt").write_text("x"))
attempt("write where read", lambda: (root / "read" / "b.txt").write_text("x"))
attempt("write", lambda: (root / "write" / "b.txt").write_text("x"))
attempt("read back", (root / "write" / "b.txt").read_text)
attempt("make folder", (root / "write" / "new").mkdir)
attempt("remove", (root / "write" / "b.txt").unlink)
attempt("list", lambda: list((root / "list").iterdir()))
attempt("read listed", (root / "list" / "a.txt").read_text)
attempt("list root", lambda: list(root.iterdir()))
attempt("read other", (root / "other.txt").read_text)
"""


@linux
def test_only_what_is_allowed_can_be_read_written_or_listed(tmp_path: Path) -> None:
    for name in ("read/deep/a.txt", "one.txt", "list/a.txt", "other.txt", "write/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("content")
    command = [sys.executable, "-c", CODE, str(tmp_path)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    results = dict(line.rsplit(" ", 1) for line in output.splitlines())
    allowed = {"read", "read one", "write", "read back", "make folder", "remove", "list"}
    assert results.pop("restricted") == "True"
    assert {name for name, result in results.items() if result == "done"} == allowed
    assert {result for result in results.values() if result != "done"} == {"PermissionError"}
    assert (tmp_path / "one.txt").read_text() == "content"


@pytest.mark.parametrize(
    ("version", "fields", "rights"),
    [(1, 1, 13), (2, 1, 14), (3, 1, 15), (4, 2, 15), (5, 2, 15), (6, 3, 15), (7, 3, 15)],
)
def test_a_kernel_is_asked_for_what_its_version_knows(
    monkeypatch: pytest.MonkeyPatch, version: int, fields: int, rights: int
) -> None:
    asked = []

    def call(number: int, attributes: bytes | None, size: ctypes.c_size_t, flags: object) -> int:
        if attributes is None:
            return version
        asked.append(struct.unpack(f"{size.value // 8}Q", attributes))
        return -1

    monkeypatch.setattr(landlock, "_call", call)
    monkeypatch.setattr(sys, "platform", "linux")
    assert not landlock.restrict_files([], [])
    # All rights but the first, to run programs; then TCP, then scopes.
    every_right = (1 << rights) - 2
    assert asked == [(every_right, 0b11, 0b11)[:fields]]


def test_elsewhere_there_is_no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert landlock_version() == 0
    assert not landlock.restrict_files([Path("/")], [])

"""Folders are proved writable before a run, not after it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable


def test_check_writable(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []
    file = tmp_path / "file"
    file.write_text("kept")
    bad = [file, file / "sub", tmp_path / "nul\0"]
    bad += [Path("/proc"), Path("/proc/sub")] if Path("/proc/self").exists() else []
    for folder in bad:
        with pytest.raises(
            FaithbenchError, match=r"cannot write results to .*; choose .*--results"
        ):
            check_writable(folder)
    assert file.read_text() == "kept"


def test_a_full_or_read_only_disk_is_found_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(FaithbenchError, match="Read-only file system; choose another folder"):
        check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []

"""Atomic writes, strict JSON, digests, and folders that are tried before a run."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cache_folder, cached_sha256, check_writable, file_sha256


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


def test_a_digest_is_of_all_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    # The test vector of FIPS 180-4.
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(path) == cached_sha256(path) == known


def test_weights_are_read_once_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 3_000_000)
    first = cached_sha256(path)
    assert first == hashlib.sha256(b"a" * 3_000_000).hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", lambda *_: pytest.fail("read it again"))
        assert cached_sha256(path) == first
    before = path.stat()
    path.write_bytes(b"b" * 3_000_000)
    # A second later, for file systems with coarse clocks.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert cached_sha256(path) == hashlib.sha256(b"b" * 3_000_000).hexdigest()


def test_the_cache_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("FAITHBENCH_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "faithbench"

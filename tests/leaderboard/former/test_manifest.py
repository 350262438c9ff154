"""The list of a build's own files: what it owns, what it refuses, and names that lead elsewhere."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from faithbench.leaderboard.former.manifest import (
    Manifest,
    manifest_json,
    manifest_of,
    not_ours,
    read_manifest,
    stale_files,
    tables_in,
)

FILES = {"README.md": b"one", "tasks/sst2.md": b"two"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_manifest_has_a_digest_per_file_and_reads_back(tmp_path: Path) -> None:
    manifest = manifest_of(FILES, "beside")
    text = manifest_json(manifest)
    assert json.loads(text) == {
        "files": {"README.md": digest(b"one"), "tasks/sst2.md": digest(b"two")},
        "tables": "beside",
    }
    assert tables_in(tmp_path) == "inside"
    (tmp_path / "manifest.json").write_bytes(text)
    assert read_manifest(tmp_path) == manifest and tables_in(tmp_path) == "beside"


@pytest.mark.parametrize(
    "text",
    [
        b"", b"[]", b"{}", b'{"name": "My app"}', b"\xff",
        b'{"files": {"../notes.md": "0"}}', b'{"files": {"/etc/passwd": "0"}}',
        b'{"files": {"records/a.json": "0"}}', b'{"files": {"tasks/../../a.md": "0"}}',
        b'{"files": {"tasks/.a.md": "0"}}', b'{"files": {}, "former": {"a/b": "0"}}',
    ],
)  # fmt: skip
def test_what_no_build_wrote_is_no_manifest(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "manifest.json").write_bytes(text)
    assert read_manifest(tmp_path) is None
    assert not_ours(FILES, tmp_path) == ["manifest.json"] and stale_files(FILES, tmp_path) == []


def test_only_a_listed_digest_makes_a_file_ours(tmp_path: Path) -> None:
    manifest = Manifest(files={"README.md": digest(b"new")}, former={"README.md": digest(b"old")})
    (tmp_path / "manifest.json").write_bytes(manifest_json(manifest))
    for data, ours in ((b"new", True), (b"old", True), (b"one", True), (b"mine", False)):
        (tmp_path / "README.md").write_bytes(data)
        assert not_ours(FILES, tmp_path) == ([] if ours else ["README.md"])
    # The same goes for what is to be removed, but not for what a build would write.
    for data, removed in ((b"new", True), (b"old", True), (b"one", False)):
        (tmp_path / "README.md").write_bytes(data)
        assert stale_files([], tmp_path) == ["README.md"] * removed

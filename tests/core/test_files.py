"""Atomic writes, strict JSON, digests, and folders that are tried before a run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from faithbench.core import files
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import (
    cache_folder,
    cached_sha256,
    check_writable,
    digest_of,
    file_sha256,
    parse_json,
    read_toml,
    replace_file,
    slug,
    sweep_below,
    temporary_folder,
)


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


def test_json_is_as_the_standard_has_it() -> None:
    assert parse_json('{"a": [1, 2.5, null], "b": {"a": -1e3}}') == {
        "a": [1, 2.5, None],
        "b": {"a": -1000.0},
    }
    for text, fault in [
        ('{"a": 1, "b": 2, "a": 3}', "key 'a' appears twice"),
        ("[NaN]", "NaN is not a number"),
        ("[-Infinity]", "-Infinity is not a number"),
        ("[1e999]", "1e999 is not a number"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "Expecting property name"),
    ]:
        with pytest.raises(ValueError, match=fault):
            parse_json(text)


def test_what_is_not_toml_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text('a = [1, 2]\n[b]\nc = "d"\n')
    assert read_toml(path) == {"a": [1, 2], "b": {"c": "d"}}
    for data, fault in [
        (b"a = " + b"9" * 5000, "4300 digits"),
        (b"a = " + b"[" * 50_000, "nested too deeply"),
        (b"a = 1\na = 2", "overwrite a value"),
        (b'a = "\xff"', "invalid start byte"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ValueError, match=fault):
            read_toml(path)


def test_a_file_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o077 == 0o666 & ~_umask() & 0o077, "others may read it"

    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"newer")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"], "no temporary file is left"
    assert path.read_bytes() == b"new"


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_folders_that_killed_processes_left_go_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in ("faithbench-abcdefgh.tmp", "faithbench-mine", "faithbench-abcdefgh.tmp/full"):
        (tmp_path / name).mkdir()
    (tmp_path / "faithbench-linklink.tmp").symlink_to(tmp_path / "faithbench-mine")
    with temporary_folder() as outer, temporary_folder() as inner:
        assert outer.is_dir() and inner.is_dir(), "what is held stays"
        left = sorted(path.name for path in tmp_path.iterdir())
        kept = ["faithbench-linklink.tmp", "faithbench-mine"]
        assert left == sorted([*kept, outer.name, inner.name])
    assert sorted(path.name for path in tmp_path.iterdir()) == kept


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_a_temporary_folder_that_another_removed_before_it_was_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, make = [], tempfile.mkdtemp

    def removed_at_first(*names: str) -> str:
        made.append(make(*names))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", removed_at_first)
    with temporary_folder() as folder:
        assert folder.is_dir() and str(folder) == made[1]
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_goes_though_its_owner_cannot_list_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may list all, so the first attempt to remove it fails here for everyone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    real, asked = subprocess.run, []

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(command[0])
        if len(asked) == 1:
            return subprocess.CompletedProcess(command, 1)
        return real(command, **options)

    monkeypatch.setattr(subprocess, "run", run)
    with temporary_folder() as folder:
        (folder / "closed").mkdir(mode=0o300)
        (folder / "closed" / "file").write_text("x")
    assert asked == ["rm", "chmod", "rm"] and not folder.exists()


def test_a_temporary_folder_goes_with_all_it_holds() -> None:
    with temporary_folder() as folder:
        deep = folder
        for _ in range(300):
            deep = deep / "d"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
    assert not folder.exists()


def test_names_of_files() -> None:
    assert slug("lrp-mask:mask=ones, seed 3") == "lrp-mask-mask=ones-seed-3"
    assert slug("../..") == "unnamed" and slug("a/b\0c") == "a-b-c"


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    expected = hashlib.sha256(b'{"a": 1, "b": [2, null]}').hexdigest()
    assert digest_of({"b": [2, None], "a": 1}) == digest_of({"a": 1, "b": (2, None)}) == expected


def test_what_a_killed_writer_left_is_swept_by_the_next(tmp_path: Path) -> None:
    """But not the file of a writer that is alive, nor those of other names."""
    code = (
        "import os, sys; from pathlib import Path; from faithbench.core.files import replace_file;"
        "os.fsync = lambda _: os.kill(os.getpid(), 9); replace_file(Path(sys.argv[1]), b'half')"
    )
    for name in ("a.json", "b.json"):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / name)], check=False)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == 2 and all(name.endswith(".tmp") for name in left)
    replace_file(tmp_path / "a.json", b"whole")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 2 and "a.json" in names and len(set(left) & set(names)) == 1


@pytest.mark.skipif(os.name != "posix", reason="locks, named pipes")
def test_all_that_killed_writers_left_below_a_folder_is_swept(tmp_path: Path) -> None:
    left, elsewhere = ".0123abcd-4567.tmp", tmp_path / "elsewhere"
    deep = tmp_path / "records" / "a" / "b"
    for folder in (deep, elsewhere):
        folder.mkdir(parents=True)
        (folder / left).write_bytes(b"half")
    kept = [deep / name for name in ("a.json", ".hidden.tmp", ".notes-4567.tmp")]
    for path in kept:
        path.write_bytes(b"whole")
    (deep / "link").symlink_to(elsewhere)
    os.mkfifo(deep / ".01234567-pipe.tmp")
    sweep_below(tmp_path / "records")
    assert sorted(deep.iterdir()) == sorted([*kept, deep / "link", deep / ".01234567-pipe.tmp"])
    (tmp_path / "link").symlink_to(elsewhere)
    sweep_below(tmp_path / "link")
    sweep_below(tmp_path / "nowhere")
    assert (elsewhere / left).exists()


@pytest.mark.skipif(os.name != "posix", reason="locks")
@pytest.mark.parametrize("moment", ["_lock", "fsync", "replace"])
def test_a_writer_never_sweeps_the_file_of_another_that_is_alive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Two write the same file: the second at a moment when the first is not done yet."""
    path, waiting = tmp_path / "a.json", [b"second"]
    of: object = {"_lock": files, "fsync": os, "replace": Path}[moment]
    real = getattr(of, moment)

    def overtaken(*arguments: object, **options: object) -> object:
        if waiting:
            replace_file(path, waiting.pop())
        return real(*arguments, **options)

    monkeypatch.setattr(of, moment, overtaken)
    replace_file(path, b"first")
    assert path.read_bytes() == b"first" and list(tmp_path.iterdir()) == [path]

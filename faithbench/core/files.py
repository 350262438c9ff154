"""Atomic file writes, strict JSON, digests, and folders for temporary and cached files."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import subprocess
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

from faithbench.core.errors import FaithbenchError

_TEMPORARY = ("faithbench-", ".tmp")  # how names of temporary folders begin and end
_PREFIX = ".{}-"  # how names of temporary files begin: eight digits of the digest of the target's


def parse_json(text: str) -> object:
    """Parse JSON as the standard has it; a key twice, NaN or infinity is a ValueError.

    Records and rows come from anyone: a second key of the same name, which Python's parser takes
    in silence, could show a reader one value and a program another.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_object, parse_constant=_refuse, parse_float=_finite
        )
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        twice = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"key {twice!r:.80} appears twice")
    return content


def _refuse(literal: str) -> float:
    raise ValueError(f"{literal} is not a number a record can hold")


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse(literal)


def read_object(path: Path, advice: str = "restore it") -> dict[str, Any]:
    """Read a file that holds one JSON object; an error names the file and what to do."""
    try:
        content = json.loads(path.read_bytes().decode())
    except OSError as error:
        raise FaithbenchError(f"cannot read {path}: {reason(error)}; {advice}") from None
    except RecursionError:
        raise FaithbenchError(f"{path} is not JSON (nested too deeply); {advice}") from None
    except ValueError as error:  # not UTF-8, or not JSON
        raise FaithbenchError(f"{path} is not JSON ({error}); {advice}") from None
    if not isinstance(content, dict):
        raise FaithbenchError(f"{path} should hold a JSON object; {advice}")
    return content


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; what is not TOML is a ValueError."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: after a crash the file is whole, old or new."""
    prefix = _PREFIX.format(hashlib.sha256(path.name.encode()).hexdigest()[:8])
    _sweep(path.parent, prefix)
    file = _new_file(path.parent, prefix)
    temporary = Path(file.name)
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            if os.name != "posix":
                file.close()  # Windows renames no open file, and has no lock that would be lost
            temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The new name is an entry of the folder, which has to reach the disk too.
    if os.name == "posix":
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def sweep_below(folder: Path) -> None:
    """Remove what killed writers of any file left in a folder and in those below it."""
    if folder.is_symlink():
        return
    for place, _, _ in os.walk(folder):  # which follows no link either
        _sweep(Path(place), _PREFIX.format("[0-9a-f]" * 8))


def _sweep(folder: Path, prefix: str) -> None:
    """Remove what killed writers left behind in one folder."""
    for left in folder.glob(f"{prefix}*.tmp"):
        if left.is_symlink() or not left.is_file():
            continue  # a named pipe would wait for ever
        with suppress(OSError), left.open("rb") as file:
            if _lock(file):  # a writer that is alive holds it
                left.unlink(missing_ok=True)


def _new_file(folder: Path, prefix: str) -> IO[bytes]:
    """Open a new file, locked, so that no other writer takes it for one that was left."""
    while True:
        # Not mkstemp: it hides the file from everyone but its owner.
        file = (folder / f"{prefix}{secrets.token_hex(8)}.tmp").open("xb")
        _lock(file, wait=True)
        # Another writer may have swept it just before: then it has no name any more.
        if Path(file.name).exists():
            return file
        file.close()


def _lock(file: IO[bytes] | int, wait: bool = False) -> bool:
    """Return whether an open file could be locked for this process; elsewhere than POSIX, no."""
    if os.name != "posix":
        return False
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def share_files(folder: Path) -> None:
    """Give the files of a folder the mode of any new file: the library of weights hides its own."""
    umask = os.umask(0o022)  # the one way to read it is to set it
    os.umask(umask)
    for path in folder.iterdir():
        if path.is_file():
            path.chmod(0o666 & ~umask)


def check_writable(folder: Path, option: str = "--results") -> None:
    """Create the folder, and write a file to see that results can be kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asking for permissions would always say yes to root, even on a read-only disk.
        # Without a name, where the system can: a killed run leaves nothing.
        with tempfile.TemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(b"faithbench")
            probe.flush()
            os.fsync(probe.fileno())
    except (OSError, ValueError) as error:
        raise FaithbenchError(
            f"cannot write results to {folder}: {reason(error)}; "
            f"choose another folder with {option}"
        ) from error


def reason(error: Exception) -> str:
    """Return in a few words what the operating system refused."""
    return str(getattr(error, "strerror", None) or error)


def slug(text: str) -> str:
    """Return a name that is safe as a file name on every system."""
    # A leading dot would hide the file, and Windows drops a trailing one.
    return re.sub(r"[^A-Za-z0-9.=-]+", "-", text).strip("-.") or "unnamed"


def digest_of(facts: object) -> str:
    """Return the sha256 of plain facts as JSON, whatever the order of their keys."""
    # Records are named and found again by such digests: separators and escapes must stay as are.
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a temporary folder, and remove it afterwards with all that it holds.

    Folders that killed processes left are removed, too: nobody holds their lock.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY[0]}????????{_TEMPORARY[1]}"):
        with _held(left) as is_ours:
            if is_ours:
                _remove(left)
    # Before it is held, another process may take a new folder for a left one: then make another.
    # Where there are no locks nobody can, and the last is as good as any.
    for is_last in (False, False, True):
        folder = Path(tempfile.mkdtemp(_TEMPORARY[1], _TEMPORARY[0]))
        try:
            with _held(folder) as is_ours:
                if (is_ours and folder.is_dir()) or is_last:
                    yield folder
                    return
        finally:
            _remove(folder)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Lock a folder; yield whether no other process holds it. Only POSIX has such locks."""
    if os.name != "posix":
        yield True
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _lock(opened)
    finally:
        os.close(opened)


@contextmanager
def _held(folder: Path) -> Iterator[bool]:
    """Lock a folder of one's own; yield whether nobody else holds it: elsewhere than POSIX, no."""
    if os.name != "posix":
        yield False
        return
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        yield os.fstat(opened).st_uid == os.getuid() and _lock(opened)
    finally:
        os.close(opened)


def _remove(folder: Path) -> None:
    # Not shutil.rmtree: folders can be nested deeper than Python can call.
    remove = ["rm", "-rf", "--", str(folder)]
    if subprocess.run(remove, check=False, capture_output=True).returncode:
        # A folder that its owner cannot list cannot be emptied.
        opened = ["chmod", "-R", "u+rwX", "--", str(folder)]
        subprocess.run(opened, check=False, capture_output=True)
        subprocess.run(remove, check=False, capture_output=True)


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes as they lie on the disk, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cached_sha256(path: Path) -> str:
    """Return a file's sha256, read once per process unless its size or time has changed.

    For weights, which take seconds to read. A small file is better digested afresh: the clock
    of a file system may not tell two writes of the same moment apart.
    """
    state = path.stat()
    return _cached_sha256(path, state.st_size, state.st_mtime_ns)


@cache
def _cached_sha256(path: Path, _size: int, _changed: int) -> str:
    return file_sha256(path)


def cache_folder() -> Path:
    """Return the folder for what can be made again: FAITHBENCH_HOME, or one in ~/.cache."""
    return Path(os.environ.get("FAITHBENCH_HOME", Path.home() / ".cache" / "faithbench"))

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
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from faithbench.core.errors import FaithbenchError


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
        keys = [key for key, _ in pairs]
        twice = next(key for index, key in enumerate(keys) if key in keys[:index])
        raise ValueError(f"key {twice!r} appears twice")
    return content


def _refuse(literal: str) -> float:
    raise ValueError(f"{literal} is not a number a record can hold")


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse(literal)


def replace_file(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: after a crash the file is whole, old or new."""
    # Not mkstemp: it hides the file from everyone but its owner.
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
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


def check_writable(folder: Path, option: str = "--results") -> None:
    """Create the folder, and write a file to see that results can be kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Asking for permissions would always say yes to root, even on a read-only disk.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe-") as probe:
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
    """Yield a temporary folder, and remove it afterwards with all that it holds."""
    folder = Path(tempfile.mkdtemp(prefix="faithbench-"))
    try:
        yield folder
    finally:
        # Not shutil.rmtree: folders can be nested deeper than Python can call.
        subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


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

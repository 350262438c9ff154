"""Names and files that a submission may have: nothing that could reach beyond its folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import EXPLAINERS
from faithbench.records.passed import IGNORED

MAX_FILES = 200
"""Per folder."""
MAX_BYTES = 64 << 20
"""Per file."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
# Windows opens a device where a file has one of these names, with whatever ending.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{i}" for d in ("com", "lpt") for i in range(10))}
_RESERVED = {"all", "records", "submissions", *_DEVICES}

# A segment of a path: ASCII, so that no two look alike, and no dot at either end.
_SEGMENT = r"[A-Za-z0-9](?:[A-Za-z0-9.=_-]{0,118}[A-Za-z0-9])?"
_ALLOWED = (
    r"entry\.toml|README\.md|LICENSE|explainer\.py|test_explainer\.py",
    rf"data/{_SEGMENT}\.(?:json|jsonl|txt|csv|tsv|toml|safetensors)",
    rf"scores/{_SEGMENT}\.jsonl(?:\.gz)?",
    rf"records/{_SEGMENT}/{_SEGMENT}/{_SEGMENT}\.json",
    rf"records/{_SEGMENT}/{_SEGMENT}/{_SEGMENT}\.rows\.jsonl",
)
_LAYOUT = re.compile("|".join(f"(?:{pattern})" for pattern in _ALLOWED))


def check_name(name: str) -> str:
    """Return a submission's name; raise if it cannot be one."""
    if not _NAME.fullmatch(name):
        raise FaithbenchError(
            f"submission name {name!r:.80} is not allowed: use 1 to 40 of a-z, 0-9 and -, "
            "with - neither first nor last"
        )
    if name in _RESERVED or name in EXPLAINERS:
        reason = "that of an explainer of faithbench" if name in EXPLAINERS else "reserved"
        raise FaithbenchError(f"submission name {name!r} is {reason}; choose another one")
    return name


def is_allowed(path: str) -> bool:
    """Return whether a submission may have a file at a path below its folder."""
    return _LAYOUT.fullmatch(path) is not None


def files_of(folder: Path) -> tuple[str, ...]:
    """Return the paths of a submission's files; raise if one does not belong there."""
    check_name(folder.name)
    if folder.is_symlink() or not folder.is_dir():
        problem = "is a symbolic link" if folder.is_symlink() else "is not a folder"
        raise FaithbenchError(
            f"submission {folder.name} {problem}; give the folder that has its entry.toml"
        )
    files = tuple(sorted(_walk(folder, folder)))
    # On macOS and Windows they would be one file, and the other's content would be lost.
    if len({path.casefold() for path in files}) < len(files):
        raise FaithbenchError(
            f"submission {folder.name} has files whose names differ in case alone; rename one"
        )
    return files


def _walk(folder: Path, root: Path) -> Iterator[str]:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path).relative_to(root).as_posix()
            where = f"submission {root.name}, file {path!r:.160}"
            # Of the link itself, not of what it points to.
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if entry.name not in IGNORED:
                    _check_depth(path, where)
                    yield from _walk(Path(entry.path), root)
                continue
            if not stat.S_ISREG(mode):
                problem = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
                raise FaithbenchError(f"{where} is {problem}; replace it by a plain file")
            if not is_allowed(path):
                raise FaithbenchError(
                    f"{where} does not belong there; a submission has entry.toml, explainer.py, "
                    "test_explainer.py, data/, scores/, records/, README.md and LICENSE: remove it"
                )
            if entry.stat(follow_symlinks=False).st_size > MAX_BYTES:
                raise FaithbenchError(
                    f"{where} has more than {MAX_BYTES >> 20} MB; make it smaller"
                )
            count += 1
            if count > MAX_FILES:
                raise FaithbenchError(f"{where}: its folder has more than {MAX_FILES} files")
            yield path


def _check_depth(path: str, where: str) -> None:
    """Refuse a folder that no allowed file can be in, before it is walked to any depth."""
    first, *rest = path.split("/")
    deepest = {"records": 2, "data": 0, "scores": 0}.get(first, -1)
    if len(rest) > deepest:
        raise FaithbenchError(
            f"{where} is a folder that does not belong there; a submission has the folders data, "
            "scores and records: remove it"
        )

"""Names and files that a submission may have: nothing that could leave its folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import EXPLAINERS

MOST_FILES = 200
MOST_BYTES = 64 << 20
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{i}" for d in ("com", "lpt") for i in range(10))}
_TAKEN = {"all", "records", "submissions", *_DEVICES}

# A part of a path: ASCII, so that no two look alike, and no dot at either end.
_PART = r"[A-Za-z0-9](?:[A-Za-z0-9.=_-]{0,118}[A-Za-z0-9])?"
_ALLOWED = (
    r"entry\.toml|README\.md|LICENSE|explainer\.py|test_explainer\.py",
    rf"data/{_PART}\.(?:json|jsonl|txt|csv|tsv|toml|safetensors)",
    rf"scores/{_PART}\.jsonl(?:\.gz)?",
    rf"records/{_PART}/{_PART}/{_PART}\.json",
    rf"records/{_PART}/{_PART}/{_PART}\.rows\.jsonl",
)
_LAYOUT = re.compile("|".join(f"(?:{one})" for one in _ALLOWED))
# Made beside the file by whoever runs its test; what lies there is never read.
_PASSED_OVER = {"__pycache__", ".pytest_cache"}


def check_name(name: str) -> str:
    """Return a submission's name, or say why it cannot be one."""
    if not _NAME.fullmatch(name):
        raise FaithbenchError(
            f"submission name {name!r:.80} is not one: use 1 to 40 of a-z, 0-9 and -, "
            "with - neither first nor last"
        )
    if name in _TAKEN or name in EXPLAINERS:
        owner = "an explainer of faithbench" if name in EXPLAINERS else "reserved"
        raise FaithbenchError(f"submission name {name!r} is {owner}; choose another one")
    return name


def files_of(folder: Path) -> tuple[str, ...]:
    """Return the paths of a submission's files, refusing what does not belong there."""
    check_name(folder.name)
    if folder.is_symlink() or not folder.is_dir():
        found = "a symbolic link" if folder.is_symlink() else "no folder"
        raise FaithbenchError(
            f"submission {folder} is {found}; give the folder that has its entry.toml"
        )
    found_files = tuple(sorted(_walk(folder, folder)))
    if len({path.casefold() for path in found_files}) < len(found_files):
        raise FaithbenchError(
            f"submission {folder.name} has files whose names differ in case alone; rename one"
        )
    return found_files


def _walk(folder: Path, root: Path) -> Iterator[str]:
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path).relative_to(root).as_posix()
            said = f"submission {root.name}, file {path!r:.160}"
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if entry.name not in _PASSED_OVER:
                    _check_depth(path, said)
                    yield from _walk(Path(entry.path), root)
                continue
            if not stat.S_ISREG(mode):
                kind = "a symbolic link" if stat.S_ISLNK(mode) else "no regular file"
                raise FaithbenchError(f"{said} is {kind}; put a plain file there")
            if not _LAYOUT.fullmatch(path):
                raise FaithbenchError(
                    f"{said} does not belong there; a submission has entry.toml, explainer.py, "
                    "test_explainer.py, data/, scores/, records/, README.md and LICENSE: remove it"
                )
            if entry.stat(follow_symlinks=False).st_size > MOST_BYTES:
                raise FaithbenchError(
                    f"{said} has more than {MOST_BYTES >> 20} MB; make it smaller"
                )
            count += 1
            if count > MOST_FILES:
                raise FaithbenchError(f"{said}: its folder has more than {MOST_FILES} files")
            yield path


def _check_depth(path: str, said: str) -> None:
    """Stop at folders that no allowed file is in, so that no depth is walked in vain."""
    first, *rest = path.split("/")
    deepest = {"records": 2, "data": 0, "scores": 0}.get(first, -1)
    if len(rest) > deepest:
        raise FaithbenchError(
            f"{said} is a folder that does not belong there; a submission has the folders data, "
            "scores and records: remove it"
        )

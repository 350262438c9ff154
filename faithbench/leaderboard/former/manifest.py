"""Which files of a folder a build made: those listed with their digest, and no others.

A build replaces and removes only what is its own. The list lies beside the files; while files are
being replaced, it has their former digests too, so that a killed build can be done again.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationError

from faithbench.core.files import file_sha256
from faithbench.core.schema import Facts
from faithbench.leaderboard.pages.formatting import MADE

MANIFEST = "manifest.json"
"""The list's file name."""

Tables = Literal["inside", "beside"]
"""Whether the page has its tables inside, or in files beside it that load on demand."""

FOLDERS = ("badges", "data", "tables", "tasks")
"""The folders that a build writes to."""

# Pages of boards from before there was a manifest: they are known by their first line.
_OLDER = ("tasks/*.md", "tables/*.tex", "heads.md")


def _check_name(name: str) -> str:
    """Refuse a name that a build does not give: a list from anywhere must not lead elsewhere."""
    if not re.fullmatch(rf"(?:(?:{'|'.join(FOLDERS)})/)?[A-Za-z0-9_=-][A-Za-z0-9._=-]*", name):
        raise ValueError(f"{name!r} is no file of a leaderboard")
    return name


_Name = Annotated[str, AfterValidator(_check_name)]


class Manifest(Facts):
    """The files of a build by their digests; `former` are those that a build is replacing."""

    files: dict[_Name, str]
    former: dict[_Name, str] = Field(default_factory=dict)
    tables: Tables = "inside"

    def owns(self, name: str, digest: str) -> bool:
        """Return whether a build made the file of this name that has this digest."""
        return digest in (self.files.get(name), self.former.get(name))


def manifest_of(files: Mapping[str, bytes], tables: Tables) -> Manifest:
    """Return the list of these files."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    return Manifest(files=digests, tables=tables)


def manifest_json(manifest: Manifest) -> bytes:
    """Return a manifest as its file has it: a line per file, so that changes show."""
    done = None if manifest.former else {"former"}
    return (manifest.model_dump_json(indent=1, exclude=done) + "\n").encode()


def read_manifest(out: Path) -> Manifest | None:
    """Return the list in a folder: an empty one if there is none, None if it is no such list."""
    path = out / MANIFEST
    if not os.path.lexists(path):
        return Manifest(files={})
    try:
        return Manifest.model_validate_json(path.read_bytes()) if _is_plain(path) else None
    except (OSError, ValidationError):
        return None


def tables_in(out: Path) -> Tables:
    """Return where the board in a folder has its tables; inside, if there is no board."""
    return (read_manifest(out) or Manifest(files={})).tables


def not_ours(files: Mapping[str, bytes], out: Path) -> list[str]:
    """Return which of these files are in the folder already and were made by nobody's build."""
    manifest = read_manifest(out)
    names = [name for name in files if name != MANIFEST and os.path.lexists(out / name)]
    foreign = [name for name in names if not _is_ours(manifest, out, name, files[name])]
    return [*([MANIFEST] if manifest is None else []), *foreign]


def _is_ours(manifest: Manifest | None, out: Path, name: str, data: bytes) -> bool:
    """Return whether a build made a file, or would write the very same."""
    path = out / name
    if not _is_plain(path):
        return False
    if manifest is not None and manifest.owns(name, file_sha256(path)):
        return True
    return path.read_bytes() == data


def stale_files(files: Iterable[str], out: Path, overwrite: bool = False) -> list[str]:
    """Return files of former builds that are no more, such as pages of tables without records.

    With `overwrite`, those of builds that wrote no manifest are among them.
    """
    manifest = read_manifest(out) or Manifest(files={})
    listed = sorted({*manifest.files, *manifest.former} - set(files))
    stale = [n for n in listed if _is_plain(out / n) and manifest.owns(n, file_sha256(out / n))]
    if overwrite:
        older = [path for pattern in _OLDER for path in sorted(out.glob(pattern))]
        names = [path.relative_to(out).as_posix() for path in older if _has_mark(path)]
        stale += [name for name in names if name not in files and name not in stale]
    return stale


def digests_on_disk(names: Iterable[str], out: Path) -> dict[str, str]:
    """Return the digests of those files that are there."""
    return {name: file_sha256(out / name) for name in names if _is_plain(out / name)}


def _is_plain(path: Path) -> bool:
    """Return whether a path is a file, and neither a link nor a pipe, which would wait for ever."""
    return path.is_file() and not path.is_symlink()


def _has_mark(path: Path) -> bool:
    """Return whether a file's first line says that a build made it."""
    if not _is_plain(path):
        return False
    with path.open("rb") as file:
        return MADE.encode() in file.readline()

"""Submissions that passed their check, by the digest of their content: a board shows no others."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256, parse_json, reason, replace_file
from faithbench.core.schema import Facts, describe_error
from faithbench.core.seals import seal_json, unseal_json
from faithbench.core.text import readable

IGNORED: Final = frozenset({"__pycache__", ".pytest_cache"})
"""Folders that a run of a submission's test leaves behind. Nothing in them is ever read."""
PLACEHOLDER: Final = ".gitkeep"
"""The one file that may lie beside the folders of submissions: git keeps no empty folder."""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
RecordPath = Annotated[str, Field(pattern=r"^records(?:/[A-Za-z0-9][A-Za-z0-9.=_-]*){3}\.json$")]
SubmissionName = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$")]


class PassedCheck(Facts):
    """The content that passed, and its records that were measured where the check ran."""

    content: Digest
    records: tuple[RecordPath, ...]


class _PassedFile(Facts):
    schema_version: Literal[1, 2] = Field(default=2, alias="schema")
    passed: dict[SubmissionName, PassedCheck]


@dataclass(frozen=True)
class Accepted:
    """A submission that takes part in a board, with the paths of its records below its folder."""

    folder: Path
    records: tuple[str, ...]


@dataclass(frozen=True)
class Submitted:
    """The submissions that a board may show, and a line for each that it may not."""

    accepted: tuple[Accepted, ...]
    left_out: tuple[str, ...]


def accepted_submissions(submissions: Path, file: Path) -> Submitted:
    """Return the submissions whose very content has passed; without a folder there are none."""
    passed = read_passed(file)
    accepted, left_out = [], []
    for path in sorted(submissions.iterdir()) if submissions.is_dir() else []:
        shown = f"{submissions.name}/{readable(path.name, 60)}"
        if path.name == PLACEHOLDER and path.is_file() and not path.is_symlink():
            continue
        if problem := problem_of(path, passed.get(path.name)):
            left_out.append(f"{shown}: left out, {problem}")
        else:
            accepted.append(Accepted(path, passed[path.name].records))
    return Submitted(tuple(accepted), tuple(left_out))


def read_passed(file: Path) -> dict[str, PassedCheck]:
    """Read the passed checks by the name of their submission; without a file there are none."""
    if not file.exists():
        return {}
    try:
        data = file.read_bytes()
        content = parse_json(data.decode())
        if isinstance(content, dict):  # the sha256 came with schema 2
            content = unseal_json(content, data, sealed=content.get("schema") != 1)
        return _PassedFile.model_validate_json(json.dumps(content), strict=True).passed
    except ValidationError as error:
        problem = describe_error(error)
    except (OSError, ValueError) as error:
        problem = reason(error)
    raise FaithbenchError(
        f"cannot read the passed checks in {file}: {problem}; restore the file, or remove it and "
        "run `faithbench submission regenerate`"
    )


def write_passed(file: Path, passed: Mapping[str, PassedCheck]) -> None:
    """Write the passed checks: the same ones give the same bytes."""
    content = _PassedFile(passed=dict(passed)).model_dump(by_alias=True)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, seal_json(content).encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot write the passed checks to {file}: {reason(error)}; "
            "choose another file with --passed"
        ) from error


def content_digest(folder: Path) -> str:
    """Return the digest of a submission's files; refuse odd names and what is no plain file."""
    lines = sorted(f"{file_sha256(path)} {path.relative_to(folder)}" for path in _files(folder))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def problem_of(path: Path, passed: PassedCheck | None) -> str:
    """Return why a board may not show what lies in the place of a submission, or nothing."""
    if path.is_symlink() or not path.is_dir():
        return "it is not a folder"
    again = "`faithbench submission regenerate` measures and checks it"
    if passed is None:
        return f"no check of it has passed; {again}"
    try:
        same = content_digest(path) == passed.content
    except FaithbenchError as error:
        return str(error)
    return "" if same else f"its files are not those that passed their check; {again}"


def _files(folder: Path) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        for entry in entries:
            # A line break in a name could make one file digest as two.
            if not entry.name.isprintable():
                raise FaithbenchError(f"the name of {readable(entry.name, 60)} in it is not plain")
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if entry.name not in IGNORED:
                    yield from _files(Path(entry.path))
            elif stat.S_ISREG(mode):
                yield Path(entry.path)
            else:
                raise FaithbenchError(f"{readable(entry.name, 60)} in it is not a plain file")

"""Files of rows, read: checked against a digest, unpacked within bounds, and line by line."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json
from faithbench.records.rows import ROWS_SCHEMA, ResultRow, Time

LARGEST: Final = 256 << 20
"""So many bytes a packed rows file may hold: a small file can unpack to any size."""
START = b'{"faithbench_rows":'

Line = TypeVar("Line", ResultRow, Time)


def read_rows(path: Path, sha256: str | None = None) -> tuple[ResultRow, ...]:
    """Read a finished rows file, checking it against the record's `sha256` if given."""
    return read_keyed_rows(path, sha256)[1]


def read_keyed_rows(path: Path, sha256: str | None = None) -> tuple[str, tuple[ResultRow, ...]]:
    """Read a finished rows file and the key of the run that made it; `.gz` is unpacked."""
    data = read_bytes(path, sha256)
    key, rows, good = parse_rows(path, data)
    if key is None or good < len(data):
        raise FaithbenchError(
            f"rows file {path} ends in half a line; run the cell again to mend it"
        )
    return key, tuple(rows)


def read_bytes(path: Path, sha256: str | None = None) -> bytes:
    """Return what a rows file holds, unpacked if its name ends in `.gz`.

    The digest is that of the file as it lies there, packed or not.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FaithbenchError(
            f"cannot read rows file {path}: {error.strerror}; it belongs beside its record"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if sha256 not in (None, found):
        raise FaithbenchError(
            f"rows file {path} has sha256 {found}, its record says {sha256}; "
            "restore the file or run the cell again"
        )
    return _unpacked(path, data) if path.suffix == ".gz" else data


def _unpacked(path: Path, data: bytes) -> bytes:
    """Unpack a gzip file, but no more than a rows file can sensibly hold."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)  # with gzip's header and checksum
    try:
        found = unpacker.decompress(data, LARGEST + 1)
        fault = "" if unpacker.eof else "its end is missing"
    except zlib.error as error:
        found, fault = b"", str(error)
    if len(found) > LARGEST:
        raise FaithbenchError(
            f"rows file {path} holds more than {LARGEST >> 20} MB unpacked, which is refused; "
            "split the examples over several runs"
        )
    if fault or unpacker.unused_data:
        raise FaithbenchError(
            f"rows file {path} is not a whole gzip file: {fault or 'something follows its end'}; "
            "restore it or run the cell again"
        )
    return found


def times_path(path: Path) -> Path:
    """Return where the times of a rows file lie: `<stem>.times.jsonl` beside it."""
    return path.with_name(f"{path.stem}.times.jsonl")


def parse_rows(path: Path, data: bytes) -> tuple[str | None, list[ResultRow], int]:
    """Return key, rows and length of the good part; no key if even the header is torn."""
    end = data.find(b"\n") + 1
    if not end and START.startswith(data[: len(START)]):
        return None, [], 0
    try:
        head = parse_json(data[:end].decode())
    except ValueError:
        head = None
    fields = head if isinstance(head, dict) else {}
    version, key = fields.get("faithbench_rows"), fields.get("key")
    if type(version) is int and version > ROWS_SCHEMA:
        raise FaithbenchError(
            f"rows file {path} was made by a newer faithbench "
            f"(rows {version}, this one reads up to {ROWS_SCHEMA}): upgrade faithbench"
        )
    if version != ROWS_SCHEMA or not isinstance(key, str):
        raise FaithbenchError(
            f"{path} is not a rows file: its first line is no header; "
            "use --fresh to replace it or choose another folder with --results"
        )
    rows, good = parse_lines(path, data[end:], ResultRow, 2)
    seen: set[str] = set()
    for number, row in enumerate(rows, 2):
        if row.id in seen:
            raise _damaged(path, number, f"example {row.id!r} appears twice")
        seen.add(row.id)
    return key, rows, end + good


def parse_lines(path: Path, data: bytes, kind: type[Line], first: int) -> tuple[list[Line], int]:
    """Return the lines, numbered from `first`, and the length of the part without a torn tail."""
    # Only at newline bytes: str.splitlines would also cut at characters inside tokens.
    *lines, tail = data.split(b"\n")
    decode = msgspec.json.Decoder(kind).decode
    found: list[Line] = []
    try:
        for line in lines:
            found.append(decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        number = first + len(found)
        last = len(found) == len(lines) - 1 and not tail
        if not last or isinstance(error, msgspec.ValidationError):
            raise _damaged(path, number, str(error)) from error
        return found, len(data) - len(lines[-1]) - 1
    return found, len(data) - len(tail)


def _damaged(path: Path, number: int, reason: str) -> FaithbenchError:
    return FaithbenchError(
        f"rows file {path}, line {number} is damaged: {reason}; "
        "restore the file or use --fresh to start anew"
    )

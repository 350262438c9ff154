"""Read files of rows: check the digest, unpack within bounds, parse line by line."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json
from faithbench.core.text import plain
from faithbench.records.rows import ROWS_SCHEMA, ResultRow, Time

MAX_UNPACKED: Final = 256 << 20
"""Maximum size of a rows file in bytes once unpacked: a small gzip file can unpack to any size."""
_HEADER_START: Final = b'{"faithbench_rows":'

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
            f"rows file {path} ends in half a line; run the explainer again to complete it"
        )
    return key, tuple(rows)


def read_bytes(path: Path, sha256: str | None = None) -> bytes:
    """Return the content of a rows file, unpacked if its name ends in `.gz`.

    The digest is that of the bytes on disk, packed or not.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FaithbenchError(
            f"cannot read rows file {path}: {error.strerror}; it belongs next to its record"
        ) from error
    actual = hashlib.sha256(data).hexdigest()
    if sha256 not in (None, actual):
        raise FaithbenchError(
            f"rows file {path} has sha256 {actual}, its record says {sha256}; "
            "restore the file or run the explainer again"
        )
    return _unpacked(path, data) if path.suffix == ".gz" else data


def _unpacked(path: Path, data: bytes) -> bytes:
    """Unpack a gzip file, refusing one that is larger than any run writes."""
    # Not the gzip module, which cannot stop at a size and reads several packed files as one;
    # 16 asks zlib for gzip's header and checksum.
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacker.decompress(data, MAX_UNPACKED + 1)
        fault = "" if unpacker.eof else "its end is missing"
    except zlib.error as error:
        unpacked, fault = b"", str(error)
    if len(unpacked) > MAX_UNPACKED:
        raise FaithbenchError(
            f"rows file {path} holds more than {MAX_UNPACKED >> 20} MB unpacked, which is "
            "refused; split the examples over several runs"
        )
    if fault or unpacker.unused_data:
        raise FaithbenchError(
            f"rows file {path} is not a whole gzip file: {fault or 'something follows its end'}; "
            "restore it or run the explainer again"
        )
    return unpacked


def times_path(path: Path) -> Path:
    """Return where the times of a rows file lie: `<stem>.times.jsonl` next to it."""
    return path.with_name(f"{path.stem}.times.jsonl")


def parse_rows(path: Path, data: bytes) -> tuple[str | None, list[ResultRow], int]:
    """Return key, rows and length of the part without a torn tail.

    The key is None if even the header is torn: a run that was killed as it began.
    """
    end = data.find(b"\n") + 1
    if not end and _HEADER_START.startswith(data[: len(_HEADER_START)]):
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
            "delete it or choose another folder with --results"
        )
    rows, good = parse_lines(path, data[end:], ResultRow, 2)
    seen: set[str] = set()
    for number, row in enumerate(rows, 2):
        if row.id in seen:
            raise _damaged(path, number, f"example {row.id!r} appears twice")
        seen.add(row.id)
    return key, rows, end + good


def parse_lines(path: Path, data: bytes, cls: type[Line], first: int) -> tuple[list[Line], int]:
    """Return the lines, numbered from `first`, and the length of the part without a torn tail."""
    # Only at newline bytes: str.splitlines would also cut at characters inside tokens.
    *lines, tail = data.split(b"\n")
    decode = msgspec.json.Decoder(cls).decode
    decoded: list[Line] = []
    try:
        for line in lines:
            decoded.append(decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        number = first + len(decoded)
        last = len(decoded) == len(lines) - 1 and not tail
        # A crash can leave rubbish (often zero bytes) with a newline at the very end. Valid JSON
        # that is no row, or rubbish further up, is no crash's doing.
        if not last or isinstance(error, msgspec.ValidationError):
            raise _damaged(path, number, str(error)) from error
        return decoded, len(data) - len(lines[-1]) - 1
    return decoded, len(data) - len(tail)


def _damaged(path: Path, number: int, reason: str) -> FaithbenchError:
    return FaithbenchError(
        f"rows file {path}, line {number} is damaged: {plain(reason)}; "
        "restore the file, or delete it to start anew"
    )

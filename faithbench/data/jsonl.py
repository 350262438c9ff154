"""Rows of a file of JSON lines, read one at a time, and a sample of them."""

from __future__ import annotations

import gzip
import hashlib
import heapq
import io
import json
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256, reason
from faithbench.core.types import Example
from faithbench.data.sources import PlacedRow
from faithbench.data.task_schema import SplitByDigest


def file_digest(path: Path) -> str:
    """Return the sha256 of a data file's bytes as they lie on the disk."""
    try:
        return file_sha256(path)
    except OSError as error:
        raise _unreadable(path, error) from error


def read_rows(path: Path) -> Iterator[PlacedRow]:
    """Yield the rows of a plain or gzipped file with their places, one line in memory at a time."""
    try:
        with path.open("rb") as raw:
            packed = path.suffix == ".gz"
            unpacked = gzip.GzipFile(fileobj=raw) if packed else raw
            # Only a line feed ends a row: texts may hold U+0085 or U+2028.
            lines = io.TextIOWrapper(unpacked, encoding="utf-8", newline="\n")
            for number, line in enumerate(lines, start=1):
                place = f"{path}, line {number}"
                yield place, _parse(place, line)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from error


def _parse(place: str, line: str) -> object:
    try:
        row: object = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FaithbenchError(f"{place}: expected one JSON object, found {error}") from error
    return row


def _unreadable(path: Path, error: Exception) -> FaithbenchError:
    return FaithbenchError(
        f"cannot read {path} as JSON lines in UTF-8: {reason(error)}; fetch it again"
    )


def share_of(rows: Iterable[PlacedRow], derived: SplitByDigest, split: str) -> Iterator[PlacedRow]:
    """Yield the rows that belong to one of the splits a file is cut into."""
    for place, row in rows:
        value = row.get(derived.by) if isinstance(row, dict) else None
        if not isinstance(value, str):
            raise FaithbenchError(
                f"{place}: field {derived.by!r}: expected the text that decides between "
                f"{', '.join(derived.shares)}, found {value!r:.60}; fix the row"
            )
        if derived.split_of(value) == split:
            yield place, row


def sample_by_digest(examples: Iterable[Example], limit: int | None) -> tuple[Example, ...]:
    """Take at most `limit` examples by the digest of their ids alone, in the order of the file.

    So a larger limit contains a smaller one, and the labels keep their shares on average. The
    other examples are not held in memory.
    """
    if limit is None:
        return tuple(examples)
    # A heap has its smallest entry at the root: digests are negated, so that it is the example
    # with the largest digest, which is the first to make room.
    kept: list[tuple[int, int, Example]] = []
    # Positions differ, so that examples, which have no order, are never compared.
    for position, example in enumerate(examples):
        digest = hashlib.sha256(f"limit:{example.id}".encode()).digest()
        entry = (-int.from_bytes(digest, "big"), position, example)
        if len(kept) < limit:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)
    return tuple(example for _, _, example in sorted(kept, key=lambda entry: entry[1]))

"""Write the rows of a run as it goes, so that a killed run can continue.

Unlike a record, which is written once and whole, a rows file grows: each append is on the disk
before the next chunk is computed, and what a crash left half-written is cut off on opening.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from types import MappingProxyType
from typing import Self

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import replace_file
from faithbench.records.rows import ResultRow, Time, to_header, to_line
from faithbench.records.rows_file import parse_lines, parse_rows, times_path

if sys.platform != "win32":
    import fcntl


class RowsFile:
    """An open, locked rows file and its times; made by `open_rows`."""

    def __init__(
        self,
        path: Path,
        head: bytes,
        files: tuple[FileIO, FileIO],
        rows: list[ResultRow],
        times: list[Time],
    ) -> None:
        self._path, self._head = path, head
        self._rows_file, self._times_file = files
        self._done = {row.id: row for row in rows}
        # A time without its row is left by a crash between the two; the later one counts.
        self._seconds = {time.id: time.seconds for time in times if time.id in self._done}

    @property
    def done(self) -> Mapping[str, ResultRow]:
        """The rows that are safely on the disk, by example id."""
        return MappingProxyType(self._done)

    @property
    def seconds(self) -> Mapping[str, float]:
        """The seconds each row took, by example id; a time lost in a crash is left out."""
        return MappingProxyType(self._seconds)

    def append(self, rows: Sequence[tuple[ResultRow, float]]) -> None:
        """Add rows with their seconds; when this returns, they have reached the disk."""
        seen: set[str] = set()
        for row, _ in rows:
            if row.id in self._done or row.id in seen:
                raise FaithbenchError(
                    f"rows file {self._path} already holds example {row.id!r}; "
                    "give each example of a task its own id"
                )
            seen.add(row.id)
        data = b"".join(to_line(row) for row, _ in rows)
        # Times first: an example whose row is there is not computed again, so a time that came
        # second could be lost for good. A time without its row is dropped on opening.
        times = b"".join(to_line(Time(id=row.id, seconds=seconds)) for row, seconds in rows)
        self._write(self._times_file, times)
        self._write(self._rows_file, data)
        self._done.update((row.id, row) for row, _ in rows)
        self._seconds.update((row.id, seconds) for row, seconds in rows)

    def _write(self, file: FileIO, data: bytes) -> None:
        good = os.fstat(file.fileno()).st_size
        try:
            # An unbuffered file may take less than it is given, as on a disk that is nearly full.
            written = file.write(data)
            while written < len(data):
                written += file.write(data[written:])
            os.fsync(file.fileno())
        except BaseException as error:
            file.truncate(good)  # a later append must not follow half a line
            if isinstance(error, OSError):
                raise _unusable(self._path, error) from error
            raise

    def finish(self, rows: Sequence[ResultRow]) -> str:
        """Replace both files by these rows and their times, close, and return the rows' sha256.

        The rows are those of `done`, with all their values and in the order of the examples.
        """
        order = [row.id for row in rows]
        if sorted(order) != sorted(self._done):
            missing = len(set(order) - set(self._done))
            raise FaithbenchError(
                f"rows file {self._path} holds {len(self._done)} examples but {len(order)} were "
                f"asked for, {missing} of them missing; delete it to start anew"
            )
        seconds = self._seconds
        times = [Time(id=i, seconds=seconds[i]) for i in order if i in seconds]
        data = self._head + b"".join(to_line(row) for row in rows)
        try:
            replace_file(times_path(self._path), b"".join(to_line(time) for time in times))
            # Last, because the lock lies on the rows file that this replaces.
            replace_file(self._path, data)
        except OSError as error:
            raise _unusable(self._path, error) from error
        self.close()
        return hashlib.sha256(data).hexdigest()

    def drop_if_empty(self) -> None:
        """Close both files, and remove them unless they hold a row."""
        self.close()
        if not self._done:
            self._path.unlink(missing_ok=True)
            times_path(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock and both files; closing twice does no harm."""
        self._rows_file.close()
        self._times_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_rows(path: Path, key: str) -> RowsFile:
    """Open the rows of a run for appending, keeping those that an earlier run of this key wrote.

    `key` is the digest of everything that determines the results. While the file is open, a
    second run that opens it is refused at once.
    """
    head = to_header(key)
    try:
        with ExitStack() as stack:
            rows_file = stack.enter_context(_open_locked(path))
            old_key, rows, good = parse_rows(path, _content(rows_file))
            if old_key not in (None, key):
                raise FaithbenchError(
                    f"rows file {path} belongs to a run with other settings, data or versions; "
                    "delete it or choose another folder with --results"
                )
            rows_file.truncate(good)
            if old_key is None:
                rows_file.write(head)
            times_file = stack.enter_context(times_path(path).open("a+b", buffering=0))
            times, good = parse_lines(
                times_path(path), _content(times_file) if rows else b"", Time, 1
            )
            times_file.truncate(good)
            stack.pop_all()
    except OSError as error:
        raise _unusable(path, error) from error
    return RowsFile(path, head, (rows_file, times_file), rows, times)


def _unusable(path: Path, error: OSError) -> FaithbenchError:
    return FaithbenchError(
        f"cannot write rows file {path}: {error.strerror}; "
        "fix that or choose another folder with --results"
    )


# Our own lock, not a FileLock of `filelock`: that opens the file a second time, so the lock would
# not lie on the descriptor that is written to and compared below, and where a file system has no
# locks it falls back to a marker file, which a killed run would leave behind. Its newer
# `lock_descriptor` is the one call of `_lock`, which is not worth a dependency.
def _open_locked(path: Path) -> FileIO:
    """Open a rows file and lock it, or refuse at once if another run has it open."""
    for _ in range(10):
        file = path.open("a+b", buffering=0)
        # Another run's finish may put a new file here while this one is being locked: then the
        # lock lies on a file that has no name any more, and the new one is tried.
        if _lock(file) and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()
    raise FaithbenchError(
        f"rows file {path} is being written by another run; "
        "wait for it to end or choose another folder with --results"
    )


def _lock(file: FileIO) -> bool:
    """Return whether the file could be locked; without locks on this system, it counts as such."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system without locks
    return True


def _content(file: FileIO) -> bytes:
    file.seek(0)
    return file.readall()

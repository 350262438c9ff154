"""Write the rows of a run as it goes, so that a killed run can continue.

Unlike a record, which is written once and whole, a rows file grows: each append is on the disk
before the next chunk is computed, and what a crash left half-written is cut off on opening. Until
it is finished every line has a checksum; a damaged one is left out, so that it is computed again.
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
from faithbench.core.seals import Unsealed, seal, unseal
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
        damaged: int = 0,
    ) -> None:
        self._path, self._head, self.damaged = path, head, damaged
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
        data = b"".join(seal(to_line(row)) for row, _ in rows)
        # Times first: an example whose row is there is not computed again, so a time that came
        # second could be lost for good. A time without its row is dropped on opening.
        times = b"".join(seal(to_line(Time(id=row.id, seconds=seconds))) for row, seconds in rows)
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

    def finish(self, rows: Sequence[ResultRow], final: Path) -> str:
        """Write these rows and their times to their final place, and return the rows' sha256.

        The rows are those of `done`, with all their values and in the order of the examples. The
        growing files stay until `discard`: a run that is killed before its record is written still
        has them.
        """
        order = [row.id for row in rows]
        if sorted(order) != sorted(self._done):
            missing = len(set(order) - set(self._done))
            raise FaithbenchError(
                f"rows file {self._path} holds {len(self._done)} examples but {len(order)} were "
                f"asked for, {missing} of them missing; start over with --fresh"
            )
        seconds = self._seconds
        times = [Time(id=i, seconds=seconds[i]) for i in order if i in seconds]
        data = self._head + b"".join(to_line(row) for row in rows)
        try:
            replace_file(times_path(final), b"".join(to_line(time) for time in times))
            replace_file(final, data)
        except OSError as error:
            raise _unusable(final, error) from error
        return hashlib.sha256(data).hexdigest()

    def discard(self) -> None:
        """Remove both files, and close them."""
        # The rows last, because the lock lies on them; but emptied first, so that a run killed
        # in between does not leave rows that have lost their times.
        if not self._rows_file.closed:
            self._rows_file.truncate(0)
        times_path(self._path).unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)
        self.close()

    def drop_if_empty(self) -> None:
        """Close both files, and remove them unless they hold a row."""
        if not self._done:
            self.discard()
        self.close()

    def close(self) -> None:
        """Release the lock and both files; closing twice does no harm."""
        self._rows_file.close()
        self._times_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_rows(path: Path, key: str, *, fresh: bool = False) -> RowsFile:
    """Open the rows of a run for appending, keeping those that an earlier run of this key wrote.

    `key` is the digest of everything that determines the results. While the file is open, a
    second run that opens it is refused at once. With `fresh`, nothing of an earlier run is kept.
    """
    try:
        return _opened(path, key, fresh, damaged=0)
    except OSError as error:
        raise _unusable(path, error) from error


def read_unfinished(path: Path) -> dict[str, tuple[ResultRow, float]]:
    """Return the rows and seconds of a run that is not finished, by example id.

    Damaged lines are left out, as they are when the run continues; a lost time counts as 0.
    """
    _, rows, _ = parse_rows(path, b"".join(unseal(path.read_bytes()).lines))
    beside = times_path(path)
    times, _ = parse_lines(beside, b"".join(unseal(beside.read_bytes()).lines), Time, 1)
    seconds = {time.id: time.seconds for time in times}
    return {row.id: (row, seconds.get(row.id, 0.0)) for row in rows}


def _opened(path: Path, key: str, fresh: bool, damaged: int) -> RowsFile:
    head = to_header(key)
    with ExitStack() as stack:
        rows_file = stack.enter_context(_open_locked(path))
        data = b"" if fresh else _content(rows_file)
        if seal(head).startswith(data):  # new, or killed as it began
            rows_file.truncate(0)
            rows_file.write(seal(head))
            data = seal(head)
        found = unseal(data)
        _check_head(path, data, found, key)
        if found.damaged:
            # In one step, and then opened anew: the lock lies on the file that this replaces.
            replace_file(path, b"".join(map(seal, found.lines)))
        else:
            rows_file.truncate(found.good)
            _, rows, _ = parse_rows(path, b"".join(found.lines))
            times_file = stack.enter_context(times_path(path).open("a+b", buffering=0))
            times = unseal(_content(times_file) if rows else b"")
            times_file.truncate(times.good)
            seconds, _ = parse_lines(times_path(path), b"".join(times.lines), Time, 1)
            stack.pop_all()
            return RowsFile(path, head, (rows_file, times_file), rows, seconds, damaged)
    return _opened(path, key, fresh=False, damaged=found.damaged)


def _check_head(path: Path, data: bytes, found: Unsealed, key: str) -> None:
    """Refuse rows of another run, and files that are none or whose first line is damaged."""
    first = data[: data.find(b"\n") + 1]
    if unseal(first).lines != found.lines[:1] or not found.lines:
        raise FaithbenchError(
            f"{path} is not a file of unfinished rows, or its first line is damaged; "
            "start over with --fresh, or choose another folder with --results"
        )
    if parse_rows(path, found.lines[0])[0] != key:
        raise FaithbenchError(
            f"rows file {path} belongs to a run with other settings, data or versions; "
            "start over with --fresh, or choose another folder with --results"
        )


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
        if _lock(file) and _has_name(file, path):
            return file
        file.close()
    raise FaithbenchError(
        f"rows file {path} is being written by another run; "
        "wait for it to end or choose another folder with --results"
    )


def _has_name(file: FileIO, path: Path) -> bool:
    """Return whether an open file is still the one that its path names."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


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

"""Files in a folder of the user's: `<name>/<stem>.jsonl.gz`, checked against the task's sums."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.columns import check_columns, our_rows
from faithbench.data.examples import FIELDS
from faithbench.data.jsonl import file_digest, read_rows, share_of
from faithbench.data.sources import PlacedRow, SplitRequest, SplitRows
from faithbench.data.task_schema import FolderTable

table = FolderTable
remote = False


def obstacle(wanted: SplitRequest[FolderTable]) -> str | None:
    """Return why this split cannot be read: no data folder, or no such file in it."""
    advice = wanted.table.get and f"; {wanted.table.get}"
    path = _file(wanted)
    if path is None:
        return f"no data folder, give --data or set FAITHBENCH_DATA{advice}"
    return None if path.is_file() else f"no file {path}{advice}"


def read(wanted: SplitRequest[FolderTable]) -> SplitRows:
    """Open the file of a split; one that the task pins is checked before its rows are read."""
    path = _file(wanted)
    assert path is not None  # or there would have been an obstacle
    digest = file_digest(path)
    checked = _is_pinned(wanted, path, digest)
    rows: Iterable[PlacedRow] = read_rows(path)
    if derived := wanted.table.derive.get(wanted.table.splits[wanted.split]):
        rows = share_of(rows, derived, wanted.split)
    if wanted.table.maps:
        rows = _under_our_names(wanted, rows)
    return SplitRows(rows, lambda: digest, wanted.task.rationale, checked)


def _under_our_names(
    wanted: SplitRequest[FolderTable], rows: Iterable[PlacedRow]
) -> Iterator[PlacedRow]:
    """Yield the rows as the table maps them, with the fields that it does not read."""
    for number, (place, theirs) in enumerate(rows):
        if not isinstance(theirs, dict):
            yield place, theirs  # an error that is told where rows become examples
            continue
        check_columns(wanted, place, theirs)
        columns = wanted.table.columns_of(theirs)
        named = (*columns.values(), wanted.table.text_from)
        read = {column.partition(".")[0] for column in named}
        others = {key: value for key, value in theirs.items() if key not in FIELDS | read}
        for row in our_rows(wanted, place, number, theirs):
            yield place, others | row


def _file(wanted: SplitRequest[FolderTable]) -> Path | None:
    root = wanted.folder or os.environ.get("FAITHBENCH_DATA")
    return wanted.table.file(Path(root).expanduser(), wanted.split) if root else None


def _is_pinned(wanted: SplitRequest[FolderTable], path: Path, digest: str) -> bool:
    """Return whether this is the very file that the task pins; refuse another one."""
    stem = wanted.table.splits[wanted.split]
    expected = wanted.table.sha256.get(stem)
    if expected is None or digest == expected or wanted.allow_changed:
        return digest == expected
    raise FaithbenchError(
        f"{path} is not the file task {wanted.task.name} was tested with: expected sha256 "
        f"{expected} (of {stem}.jsonl.gz), found {digest}; restore it, or accept it with "
        "--allow-changed-data"
    )

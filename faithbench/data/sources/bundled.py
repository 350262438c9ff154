"""Files that are shipped with the package, under `faithbench/data/bundled/<task>/`."""

from __future__ import annotations

from pathlib import Path

from faithbench.data.jsonl import file_digest, read_rows
from faithbench.data.sources import SplitRequest, SplitRows
from faithbench.data.task_schema import BundledTable

table = BundledTable
remote = False

_ROOT = Path(__file__).parents[1] / "bundled"


def obstacle(wanted: SplitRequest[BundledTable]) -> str | None:
    """Return why this split cannot be read: its file is not part of the package."""
    path = _file(wanted)
    return None if path.is_file() else f"no file {path}"


def read(wanted: SplitRequest[BundledTable]) -> SplitRows:
    """Open the file of a split. It is as the task says, because both are shipped together."""
    path = _file(wanted)
    digest = file_digest(path)
    return SplitRows(read_rows(path), lambda: digest, wanted.table.rationale, checked=True)


def _file(wanted: SplitRequest[BundledTable]) -> Path:
    return _ROOT / wanted.task.name / wanted.table.splits[wanted.split]

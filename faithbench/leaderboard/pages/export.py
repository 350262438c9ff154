"""The board as one flat table, a line per explainer and metric, for data frames."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import reason, replace_file
from faithbench.leaderboard.board import Board, BoardRow, Column, Table

Format = Literal["csv", "parquet", "json"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)

Line = dict[str, str | int | float | bool | None]
"""One explainer's result on one metric of one table, by column."""


def flat_lines(board: Board) -> Iterator[Line]:
    """Yield a line per table, explainer and metric, in the order of the board."""
    for table in board.tables:
        rows = {row.label: row for row in table.entrants}
        for column in table.columns:
            for label in column.cells:
                yield _line(table, column, rows[label])


def _line(table: Table, column: Column, row: BoardRow) -> Line:
    cell = column.cells[row.label]
    low, high = cell.ci95 or (None, None)
    return {
        "table": table.id,
        "task": table.task,
        "task_version": table.task_version,
        "source": table.source,
        "split": table.split,
        "examples": table.n,
        "model": table.model,
        "model_sha256": table.model_sha256,
        "operator": table.operator,
        "explainer": row.label,
        "explainer_version": row.version,
        "package": row.package,
        "family": row.family,
        "settings": json.dumps(row.settings, sort_keys=True),
        "seeds": " ".join(map(str, row.seeds)),
        "submission": row.submission,
        "standing": row.standing,
        "place": row.place,
        "forward_equivalents": row.forward_equivalents,
        "metric": column.metric,
        "metric_version": column.version,
        "metric_family": column.family,
        "higher_is_better": column.higher_is_better,
        "proxy": column.proxy,
        "mean": cell.mean,
        "ci95_low": low,
        "ci95_high": high,
        "n": cell.n,
        "skipped": cell.skipped,
        "skill": cell.skill,
        "letters": cell.letters,
        "best": cell.best,
        "tie": cell.tie,
        "records": " ".join(row.records),
    }


def export_bytes(board: Board, format_name: str) -> bytes:
    """Return the flat table in a format; a missing value is empty, or null where there is one."""
    lines = list(flat_lines(board))
    if format_name == "csv":
        return _csv(lines)
    if format_name == "json":
        return (json.dumps(lines, indent=1, allow_nan=False) + "\n").encode()
    if format_name == "parquet":
        return _parquet(lines)
    raise unknown("format", format_name, FORMATS)


def write_export(board: Board, path: Path, format_name: str | None = None) -> None:
    """Write the flat table; without a format, the end of the file's name says which."""
    name = format_name or path.suffix.removeprefix(".")
    data = export_bytes(board, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, data)
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {path}: {reason(error)}; choose another file"
        ) from error


def _csv(lines: list[Line]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(lines[0]) if lines else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _parquet(lines: list[Line]) -> bytes:
    import pyarrow as pa  # comes with datasets
    import pyarrow.parquet as pq

    # Types are named, so that a column of missing values alone keeps its type.
    kinds: dict[str, Any] = {
        **dict.fromkeys(("task_version", "examples", "metric_version", "n", "skipped"), pa.int64()),
        **dict.fromkeys(("higher_is_better", "proxy", "best", "tie"), pa.bool_()),
        **dict.fromkeys(
            ("place", "forward_equivalents", "mean", "ci95_low", "ci95_high", "skill"),
            pa.float64(),
        ),
    }
    names = list(lines[0]) if lines else []
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in names])
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(lines, schema=schema), buffer)
    return buffer.getvalue()

"""Records and rows on disk: their schema, their file names, and which of them may be compared.

For a notebook: `read` reads a record and `read_rows` the rows next to it; `stored_records` reads
all records of a task in a results folder. Comparisons are in `records.comparison`, entrants by
the words of `faithbench compare` in `records.entrants`.

    record = read(path)
    rows = read_rows(path.with_name(record.rows.file), record.rows.sha256)
    record.metrics["aopc"].mean, rows[0].values["aopc"]
"""

from faithbench.records.conditions import Conditions
from faithbench.records.record import read, write
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord, stored_records

__all__ = [
    "Conditions",
    "Record",
    "ResultRow",
    "StoredRecord",
    "read",
    "read_rows",
    "stored_records",
    "write",
]

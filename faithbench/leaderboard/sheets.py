"""What a table needs of a record's rows, kept in a few lists: the rows themselves are let go.

Hundreds of thousands of rows at once would take most of a build's time to keep track of.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faithbench.errors import FaithbenchError
from faithbench.row_files import read_rows
from faithbench.rows import Row
from faithbench.stored import Stored
from faithbench.terms import Terms, terms_of
from faithbench.types import Floats

STEPS = 9
"""So many shares of a text are erased for a curve: 10, 20, ..., 90%."""


@dataclass(frozen=True)
class Sheet:
    """A record with its terms and values: one per example, in the order of the sorted `ids`.

    A missing value is NaN, so that the values of a metric are one array.
    `curve` is the mean probability as more is erased, over the examples that have a curve;
    `scored` are the rows that keep tokens and scores, by id.
    """

    stored: Stored
    terms: Terms
    ids: tuple[str, ...]
    values: dict[str, Floats]
    curve: tuple[float, ...]
    scored: dict[str, Row]


def read_sheet(stored: Stored) -> Sheet:
    """Read the rows of a record, checked against its digest, and keep what tables need."""
    record = stored.record
    rows = read_rows(stored.path.with_name(record.rows.file), record.rows.sha256)
    ordered = sorted(rows, key=lambda row: row.id)
    try:
        found = [[*map(row.values.__getitem__, record.metrics)] for row in ordered]
    except KeyError as error:
        raise FaithbenchError(
            f"record {stored.path} holds metric {error}, which some of its rows do not have; "
            "restore the files or run the cell again"
        ) from error
    # A row per metric: each is read as a whole, over and over.
    table = np.array(found, dtype=float).reshape(len(ordered), len(record.metrics)).T.copy()
    curves = [(row.probability, *row.curve) for row in ordered if len(row.curve) == STEPS]
    return Sheet(
        stored,
        terms_of(record, ordered),
        tuple(row.id for row in ordered),
        dict(zip(record.metrics, table, strict=True)),
        tuple(np.mean(curves, axis=0).tolist()) if curves else (),
        {row.id: row for row in ordered if row.tokens},
    )

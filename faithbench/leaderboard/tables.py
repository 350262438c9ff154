"""From groups of comparable records to the tables of the board."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from faithbench.core.rounding import decimals
from faithbench.explainers.registry import EXPLAINERS
from faithbench.leaderboard.board import BoardRow, Column, ShownExample, Standing, Table
from faithbench.leaderboard.columns import metric_columns
from faithbench.leaderboard.cost_columns import cost_columns, cost_of, interval_of
from faithbench.leaderboard.examples import shown_examples
from faithbench.leaderboard.gather import Entry, Group
from faithbench.leaderboard.names import table_ids, table_titles
from faithbench.leaderboard.standings import SHELVES, aspect_ranks, places_of
from faithbench.metrics.cost import (
    BACKWARDS,
    FORWARD_EQUIVALENTS,
    FORWARDS,
    PEAK_MEMORY,
    SECONDS,
)
from faithbench.metrics.kinds import Aspect
from faithbench.records.conditions import Conditions
from faithbench.records.schema import Record


@dataclass(frozen=True)
class TableContent:
    """All that one group gives to its table; its id and title depend on the other tables.

    Made apart from the table, since groups are worked on in several processes. `record` is any
    one of the group: they all agree in the facts of task and model.
    """

    conditions: Conditions
    record: Record
    rows: tuple[BoardRow, ...]
    columns: tuple[Column, ...]
    shown: tuple[ShownExample, ...]


def content_of(group: Group) -> TableContent:
    """Return what a group gives to its table: the expensive part of a board."""
    columns, standings = metric_columns(group)
    aspects = aspect_ranks(columns, standings)
    places = places_of(aspects)
    rows = [
        _board_row(
            entry,
            standings[entry.label],
            aspects.get(entry.label, {}),
            places.get(entry.label),
        )
        for entry in group.entries
    ]
    return TableContent(
        conditions=group.conditions,
        record=group.entries[0].first,
        rows=tuple(sorted(rows, key=_shelf)),
        columns=(*columns, *cost_columns(group)),
        shown=shown_examples(group),
    )


def _shelf(row: BoardRow) -> tuple[int, float, str]:
    """Order by standing, then by place, then by name."""
    return SHELVES.index(row.standing), row.place or 0.0, row.label


def tables_of(contents: Iterable[TableContent]) -> tuple[Table, ...]:
    """Return the tables of a board in order, with ids and titles that tell them apart."""
    ordered = sorted(contents, key=lambda content: _sort_key(content.conditions))
    conditions = [content.conditions for content in ordered]
    names = zip(table_ids(conditions), table_titles(conditions), strict=True)
    return tuple(
        _table(table_id, title, content)
        for (table_id, title), content in zip(names, ordered, strict=True)
    )


def _sort_key(conditions: Conditions) -> tuple[str, ...]:
    """Order by task, bundled data last, then by whatever else differs."""
    # All as text, numbers with leading zeros and False before True, so that any two compare.
    return (
        conditions.task,
        str(conditions.source == "bundled"),
        conditions.source,
        f"{conditions.task_version:06}",
        conditions.split,
        conditions.operator,
        conditions.long,
        conditions.dtype,
        conditions.model_sha256,
        conditions.ids,
        conditions.data_sha256,
        f"{conditions.protocol:06}",
        conditions.erasure_token,
    )


def _table(table_id: str, title: str, content: TableContent) -> Table:
    conditions, record = content.conditions, content.record
    return Table(
        id=table_id,
        task=conditions.task,
        task_version=conditions.task_version,
        title=title,
        kind=record.task.kind,
        source=record.task.source,
        split=conditions.split,
        n=conditions.n,
        data_sha256=conditions.data_sha256,
        model=conditions.model,
        model_sha256=conditions.model_sha256,
        model_known_by="weights" if record.model.sha256 is None else "files",
        dtype=conditions.dtype,
        accuracy=record.model.accuracy,
        tpr_drop=record.model.tpr_drop,
        truncated=record.model.truncated,
        protocol=conditions.protocol,
        operator=conditions.operator,
        erasure_token=conditions.erasure_token,
        long=conditions.long,
        rationale=record.task.rationale,
        entrants=content.rows,
        columns=content.columns,
        shown=content.shown,
    )


def _board_row(
    entry: Entry, standing: Standing, aspects: dict[Aspect, float], place: float | None
) -> BoardRow:
    explainer = entry.first.explainer
    peak_memory = cost_of(entry, PEAK_MEMORY)
    return BoardRow(
        label=entry.label,
        name=explainer.name,
        family=_family(explainer.name) if entry.submission is None else "submission",
        package=explainer.package,
        version=explainer.version,
        settings=explainer.settings,
        seeds=tuple(sorted(seed for record in entry.records for seed in record.seeds)),
        submission=entry.submission,
        records=entry.shown_paths,
        seconds=cost_of(entry, SECONDS),
        seconds_ci95=interval_of(entry, SECONDS),
        peak_memory_bytes=None if peak_memory is None else round(peak_memory),
        forwards=cost_of(entry, FORWARDS),
        backwards=cost_of(entry, BACKWARDS),
        forward_equivalents=cost_of(entry, FORWARD_EQUIVALENTS),
        curve=_curve(entry),
        standing=standing,
        aspects=aspects,
        place=place,
    )


def _family(name: str) -> str:
    """Return an explainer's family; a record may name a plugin that is not installed here."""
    if name in EXPLAINERS:
        return EXPLAINERS[name].family
    return "captum" if name.startswith("captum:") else "plugin"


def _curve(entry: Entry) -> tuple[float, ...]:
    """Return the mean curve over all seeds; empty where a record has none."""
    curves = [values.curve for values in entry.record_values]
    if not all(curves):
        return ()
    # The curve of a record is already the mean over its own seeds.
    seeds = [len(record.seeds) for record in entry.records]
    return tuple(decimals(mean) for mean in np.average(curves, axis=0, weights=seeds))

"""From a group of records on the same terms to a table of the board."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from faithbench.core.rounding import decimals
from faithbench.explainers.registry import EXPLAINERS
from faithbench.leaderboard.board import BoardRow, Table
from faithbench.leaderboard.columns import metric_columns
from faithbench.leaderboard.cost_columns import cost_of, seconds_interval, speed_columns
from faithbench.leaderboard.examples import shown_examples
from faithbench.leaderboard.gather import Entry, Group
from faithbench.leaderboard.names import table_ids, table_titles
from faithbench.records.conditions import Conditions

Draft = tuple[Conditions, Table]
"""A table that has no id and title yet: they tell it from all others."""


def drafts_of(groups: Iterable[Group]) -> list[Draft]:
    """Return a table without id and title per group."""
    return [(group.terms, _table(group)) for group in groups]


def named(drafts: Iterable[Draft]) -> tuple[Table, ...]:
    """Order tables by their terms, and give them ids and titles."""
    ordered = sorted(drafts, key=lambda draft: _place(draft[0]))
    every = [terms for terms, _ in ordered]
    found = zip(ordered, table_ids(every), table_titles(every), strict=True)
    return tuple(
        table.model_copy(update={"id": name, "title": title}) for (_, table), name, title in found
    )


def _place(terms: Conditions) -> tuple[str, ...]:
    """Order by task, bundled data last, then by whatever else differs."""
    return (
        terms.task, str(terms.source == "bundled"), terms.source, f"{terms.task_version:06}",
        terms.split, terms.operator, terms.long, terms.dtype, terms.weights_sha256, terms.ids,
        terms.data_sha256, f"{terms.protocol:06}", terms.erasure_token,
    )  # fmt: skip


def _table(group: Group) -> Table:
    terms, record = group.terms, group.contenders[0].first
    return Table(
        id="",
        task=terms.task,
        task_version=terms.task_version,
        title="",
        kind=record.task.kind,
        source=record.task.source,
        split=terms.split,
        n=terms.n,
        data_sha256=terms.data_sha256,
        model=terms.model,
        weights_sha256=terms.weights_sha256,
        dtype=terms.dtype,
        accuracy=record.model.accuracy,
        tpr_drop=record.model.tpr_drop,
        truncated=record.model.truncated,
        protocol=terms.protocol,
        operator=terms.operator,
        erasure_token=terms.erasure_token,
        long=terms.long,
        rationale=record.task.rationale,
        entrants=tuple(_entrant(contender) for contender in group.contenders),
        columns=(*metric_columns(group), *speed_columns(group)),
        shown=shown_examples(group),
    )


def _entrant(contender: Entry) -> BoardRow:
    explainer = contender.first.explainer
    peak = cost_of(contender, "peak_memory")
    return BoardRow(
        label=contender.label,
        name=explainer.name,
        family=_family(explainer.name) if contender.submission is None else "submission",
        package=explainer.package,
        version=explainer.version,
        settings=explainer.settings,
        seeds=tuple(sorted(seed for record in contender.records for seed in record.seeds)),
        submission=contender.submission,
        records=contender.places,
        seconds=cost_of(contender, "seconds"),
        seconds_ci95=seconds_interval(contender),
        peak_memory_bytes=None if peak is None else round(peak),
        forwards=cost_of(contender, "forwards"),
        backwards=cost_of(contender, "backwards"),
        forward_equivalents=cost_of(contender, "forward_equivalents"),
        curve=_curve(contender),
    )


def _family(name: str) -> str:
    if name in EXPLAINERS:
        return EXPLAINERS[name].family
    return "captum" if name.startswith("captum:") else "plugin"


def _curve(contender: Entry) -> tuple[float, ...]:
    """Return the mean curve over seeds; nothing where a record has none."""
    curves = [sheet.curve for sheet in contender.sheets]
    if not all(curves):
        return ()
    weights = [len(record.seeds) for record in contender.records]
    return tuple(decimals(share) for share in np.average(curves, axis=0, weights=weights))

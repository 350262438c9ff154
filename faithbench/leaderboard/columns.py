"""The columns of a table: for each metric a score per explainer, and the tests of all pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import all_significant, decimals
from faithbench.core.types import Floats
from faithbench.leaderboard.board import Column, Pair, Score
from faithbench.leaderboard.gather import Entry, Group
from faithbench.metrics.registry import FAMILIES, METRICS, Family, needs_encoder, title_of
from faithbench.records.schema import Record
from faithbench.stats.summaries import Summary, summaries
from faithbench.stats.tournament import Duel, tournament


class Variant(NamedTuple):
    """One way a metric was measured: values of two variants are never in one column.

    `encoder` is that of metrics which need one, and empty for all others.
    """

    name: str
    version: int
    family: Family
    higher_is_better: bool | None
    proxy: bool
    encoder: str


def metric_columns(group: Group) -> list[Column]:
    """Return a column per metric in which any explainer has a value, by family and catalogue."""
    entries: dict[Variant, list[Entry]] = {}
    for entry in group.entries:
        for variant in variants_of(entry):
            entries.setdefault(variant, []).append(entry)
    names = [variant.name for variant in entries]
    ordered = sorted(entries, key=_sort_key)
    tables = [{e.label: e.values(variant.name) for e in entries[variant]} for variant in ordered]
    # Summarised all at once: one large matrix product takes less time than many small ones.
    summary = iter(summaries([values for table in tables for values in table.values()]))
    columns = []
    for variant, table in zip(ordered, tables, strict=True):
        own_summaries = {label: next(summary) for label in table}
        people = [entry.label for entry in entries[variant] if entry.is_human]
        key = _column_key(variant, names)
        columns.append(_column(variant, key, table, own_summaries, people))
    return [column for column in columns if any(score.n for score in column.cells.values())]


def variants_of(entry: Entry) -> list[Variant]:
    """Return the variants of an entry's metrics, refusing seeds that were measured differently."""
    first, *others = (_variants(record, entry) for record in entry.records)
    for other in others:
        for name in set(first) & set(other):
            if first[name] != other[name]:
                raise FaithbenchError(
                    f"records of {entry.label} under different seeds hold {name!r} of "
                    f"several versions or encoders ({', '.join(entry.shown_paths)}); run them "
                    "again together"
                )
    shared = set(first).intersection(*others)
    return [variant for name, variant in first.items() if name in shared]


def _variants(record: Record, entry: Entry) -> dict[str, Variant]:
    encoder = str(record.protocol.encoder)
    return {
        name: Variant(
            name=name,
            version=facts.version,
            family=_known_family(facts.family, name, entry),
            higher_is_better=facts.higher_is_better,
            proxy=facts.proxy,
            encoder=encoder if needs_encoder(name) else "",
        )
        for name, facts in record.metrics.items()
    }


def _known_family(name: str, metric: str, entry: Entry) -> Family:
    """Return a family of metrics by its name, refusing one that a board has no place for."""
    for family in FAMILIES:
        if family == name:
            return family
    raise FaithbenchError(
        f"record {entry.shown_paths[0]} says that metric {metric!r} is of family {name!r}, not "
        f"one of {', '.join(FAMILIES)}; fix the record, or upgrade faithbench"
    )


def _column(
    variant: Variant,
    key: str,
    table: Mapping[str, Floats],
    own_summaries: Mapping[str, Summary],
    people: Collection[str],
) -> Column:
    """Test all explainers but `people`, the rationales that people marked: they come last."""
    methods = {label: values for label, values in table.items() if label not in people}
    result = tournament(methods, variant.higher_is_better)
    scores = {}
    for label in (*result.order, *people):
        mean, interval, n, skipped = own_summaries[label]
        scores[label] = Score(
            mean=None if mean is None else decimals(mean),
            ci95=None if interval is None else (decimals(interval[0]), decimals(interval[1])),
            n=n,
            skipped=skipped,
            letters=result.letters.get(label, ""),
            best=label == result.best,
            tie=label in result.ties,
        )
    # Not validated: all parts were made or checked here, and a leaderboard may have a hundred
    # thousand pairs; to check them again would take about a second.
    return Column.model_construct(
        metric=key,
        title=title_of(variant.name) + key.removeprefix(variant.name),
        family=variant.family,
        higher_is_better=variant.higher_is_better,
        version=variant.version,
        proxy=variant.proxy,
        cells=scores,
        pairs=_pairs(result.duels),
    )


def _pairs(duels: Sequence[Duel]) -> tuple[Pair, ...]:
    """Return the tests of all pairs, rounded."""
    p_values = all_significant([duel.test.p for duel in duels], 4)
    adjusted = all_significant([duel.adjusted for duel in duels], 4)
    # Plus zero: minus zero would be written as -0.0.
    effects = (np.round([duel.test.effect for duel in duels], 4) + 0.0).tolist()
    return tuple(
        Pair(
            first=duel.first,
            second=duel.second,
            test=duel.test.name,
            n=duel.test.n,
            p=p,
            adjusted=adjusted_p,
            effect=effect,
            reason=duel.test.reason,
        )
        for duel, p, adjusted_p, effect in zip(duels, p_values, adjusted, effects, strict=True)
    )


def _column_key(variant: Variant, names: Sequence[str]) -> str:
    """Return the metric's name, with version and encoder where the table has several variants."""
    if names.count(variant.name) == 1:
        return variant.name
    return f"{variant.name}@{variant.version}" + (f" ({variant.encoder})" * bool(variant.encoder))


def _sort_key(variant: Variant) -> tuple[int, int, str]:
    """Order by family, then as in the catalogue of metrics, unknown ones last."""
    catalogue = {name: index for index, name in enumerate(METRICS)}
    # As text, since Python does not order None and booleans.
    index = catalogue.get(variant.name, len(catalogue))
    return FAMILIES.index(variant.family), index, json.dumps(variant)

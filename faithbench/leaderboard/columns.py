"""The columns of a table: for each metric a cell per explainer, and the tests of all pairs."""

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
from faithbench.metrics.registry import FAMILIES, METRICS, TITLES
from faithbench.records.schema import Record
from faithbench.stats.summaries import Summary, summaries
from faithbench.stats.tournament import Duel, tournament


class Kind(NamedTuple):
    """What the values of one column share: they are never mixed with others.

    `encoder` is that of `iou_semantic`, and empty for all other metrics.
    """

    name: str
    version: int
    family: str
    higher_is_better: bool | None
    proxy: bool
    encoder: str


def metric_columns(group: Group) -> list[Column]:
    """Return a column per metric in which someone has a value, by family and catalogue."""
    kinds: dict[Kind, list[Entry]] = {}
    for contender in group.contenders:
        for kind in kinds_of(contender):
            kinds.setdefault(kind, []).append(contender)
    names = [kind.name for kind in kinds]
    ordered = sorted(kinds, key=_place)
    tables = [{c.label: c.values(kind.name) for c in kinds[kind]} for kind in ordered]
    # All at once: one large product takes less time than many small ones.
    found = iter(summaries([values for table in tables for values in table.values()]))
    made = []
    for kind, table in zip(ordered, tables, strict=True):
        own = {label: next(found) for label in table}
        people = [c.label for c in kinds[kind] if c.is_human]
        made.append(_column(kind, _key(kind, names), table, own, people))
    return [column for column in made if any(cell.n for cell in column.cells.values())]


def kinds_of(contender: Entry) -> list[Kind]:
    """Return the kinds of a contender's metrics, refusing seeds that do not share them."""
    first, *others = map(_kinds, contender.records)
    for other in others:
        for name in set(first) & set(other):
            if first[name] != other[name]:
                raise FaithbenchError(
                    f"records of {contender.label} under different seeds hold {name!r} of "
                    f"several versions or encoders ({', '.join(contender.places)}); run them "
                    "again together"
                )
    shared = set(first).intersection(*others)
    return [kind for name, kind in first.items() if name in shared]


def _kinds(record: Record) -> dict[str, Kind]:
    encoder = str(record.protocol.encoder)
    return {
        name: Kind(
            name,
            facts.version,
            facts.family,
            facts.higher_is_better,
            facts.proxy,
            encoder if name == "iou_semantic" else "",
        )
        for name, facts in record.metrics.items()
    }


def _column(
    kind: Kind,
    key: str,
    table: Mapping[str, Floats],
    found: Mapping[str, Summary],
    people: Collection[str],
) -> Column:
    """Show what is `found` of all, and test all but `people`, a yardstick that comes last."""
    result = tournament({k: v for k, v in table.items() if k not in people}, kind.higher_is_better)
    cells = {}
    for label in (*result.order, *people):
        mean, interval, n, skipped = found[label]
        cells[label] = Score(
            mean=None if mean is None else decimals(mean),
            ci95=None if interval is None else (decimals(interval[0]), decimals(interval[1])),
            n=n,
            skipped=skipped,
            letters=result.letters.get(label, ""),
            best=label == result.best,
            tie=label in result.ties,
        )
    title = TITLES.get(kind.name, kind.name) + key.removeprefix(kind.name)
    column = Column.model_validate(
        {
            "metric": key,
            "title": title,
            "family": kind.family,
            "higher_is_better": kind.higher_is_better,
            "version": kind.version,
            "proxy": kind.proxy,
            "cells": cells,
            "pairs": (),
        }
    )
    # Added unchecked: they are made right here, and there are a hundred thousand.
    return column.model_copy(update={"pairs": _pairs(result.duels)})


def _pairs(duels: Sequence[Duel]) -> tuple[Pair, ...]:
    """Return the tests of all pairs, rounded."""
    ps = all_significant([duel.test.p for duel in duels], 4)
    effects = (np.round([duel.test.effect for duel in duels], 4) + 0.0).tolist()
    after = all_significant([duel.adjusted for duel in duels], 4)
    return tuple(
        Pair(first, second, test, n, p, adjusted, effect, reason)
        for (first, second, (_, _, n, reason, test), _), p, adjusted, effect in zip(
            duels, ps, after, effects, strict=True
        )
    )


def _key(kind: Kind, names: Sequence[str]) -> str:
    """Return the metric's name, with version and encoder where the table has several of it."""
    if names.count(kind.name) == 1:
        return kind.name
    return f"{kind.name}@{kind.version}" + (f" ({kind.encoder})" if kind.encoder else "")


def _place(kind: Kind) -> tuple[int, int, str]:
    family = FAMILIES.index(kind.family) if kind.family in FAMILIES else len(FAMILIES)
    places = {name: place for place, name in enumerate(METRICS)}
    return family, places.get(kind.name, len(places)), json.dumps(kind)

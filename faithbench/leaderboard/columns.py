"""The columns of a table: for each metric a score per explainer, and the tests of all pairs."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import all_significant, decimals
from faithbench.core.types import Floats
from faithbench.leaderboard.board import Column, Pair, Score, Standing
from faithbench.leaderboard.column_power import power_of
from faithbench.leaderboard.gather import Entry, Group
from faithbench.leaderboard.standings import (
    GATE,
    SHELVES,
    filled_mean,
    is_above,
    skills_of,
    standings_of,
)
from faithbench.metrics.kinds import FAMILIES, Family
from faithbench.metrics.registry import (
    METRICS,
    is_outdated,
    is_tested_by_mean,
    needs_encoder,
    title_of,
)
from faithbench.records.schema import Record
from faithbench.stats.summaries import Summary, summaries
from faithbench.stats.tournament import Tournament, tournament


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


class Measured(NamedTuple):
    """A variant with its values by label, and what sums them up."""

    variant: Variant
    key: str
    values: dict[str, Floats]
    summaries: dict[str, Summary]


def metric_columns(group: Group) -> tuple[list[Column], dict[str, Standing]]:
    """Return a column per metric in which any explainer has a value, and all standings.

    Columns are ordered by family and as in the catalogue of metrics.
    """
    measured = _measured(group)
    gate = _gate_tests(measured, group)
    standings = standings_of(group, gate, [_filled_means(m) for m in measured if _is_ranked(m)])
    columns = [_column(m, group, standings, gate) for m in measured]
    return columns, standings


def _measured(group: Group) -> list[Measured]:
    entries: dict[Variant, list[Entry]] = {}
    for entry in group.entries:
        for variant in variants_of(entry):
            entries.setdefault(variant, []).append(entry)
    names = [variant.name for variant in entries]
    ordered = sorted(entries, key=_sort_key)
    tables = [{e.label: e.values(variant.name) for e in entries[variant]} for variant in ordered]
    # Summarised all at once: one large matrix product takes less time than many small ones.
    summary = iter(summaries([values for table in tables for values in table.values()]))
    measured = [
        Measured(variant, _column_key(variant, names), table, {one: next(summary) for one in table})
        for variant, table in zip(ordered, tables, strict=True)
    ]
    return [m for m in measured if any(n for _, _, n, _ in m.summaries.values())]


def _gate_tests(measured: Sequence[Measured], group: Group) -> Tournament | None:
    """Return the tests of the metric that tells a method from random scores, newest version."""
    of_gate = [m for m in measured if m.variant.name == GATE]
    newest = max(of_gate, key=lambda m: m.variant.version, default=None)
    return None if newest is None else _tests(newest, _tested_labels(group))


def _is_ranked(measured: Measured) -> bool:
    """Return whether a table's ranking reads a column: those of older versions only stay shown."""
    name = measured.variant.name
    # A version in the key means that the table holds several; the newest counts.
    return (
        name in METRICS
        and METRICS[name].ranked
        and measured.variant.version == METRICS[name].version
    )


def _filled_means(measured: Measured) -> dict[str, float | None]:
    """Return what each explainer is ranked by in a column: its mean, blanks filled in."""
    name = measured.variant.name
    blank = METRICS[name].blank if name in METRICS else None
    return {
        label: filled_mean(mean, n, skipped, blank)
        for label, (mean, _, n, skipped) in measured.summaries.items()
    }


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


def _tests(measured: Measured, labels: Collection[str]) -> Tournament:
    values = {label: v for label, v in measured.values.items() if label in labels}
    variant = measured.variant
    by_mean = is_tested_by_mean(variant.name)
    return tournament(values, variant.higher_is_better, by_mean=by_mean)


def _tested_labels(group: Group) -> set[str]:
    """Return all explainers but the rationales that people marked: those are a yardstick."""
    return {entry.label for entry in group.entries if not entry.is_human}


def _column(
    measured: Measured,
    group: Group,
    standings: Mapping[str, Standing],
    gate: Tournament | None,
) -> Column:
    """Test explainers against each other; controls and those below the line come last."""
    variant, key, values, own_summaries = measured
    above = {label for label, standing in standings.items() if is_above(standing)}
    # Among all, so that each method is tested against random scores too; stability apart, where
    # scores that ignore the input would win.
    tested = above if variant.family == "stability" else _tested_labels(group)
    result = (
        gate
        if gate is not None and variant.name == GATE and set(gate.means) == tested & set(values)
        else _tests(measured, tested)
    ).among(above)
    means = {label: own_summaries[label][0] for label in own_summaries}
    skills = skills_of(
        _filled_means(measured),
        _random_label(group),
        result.best,
        _attainable(variant),
        variant.higher_is_better,
    )
    scores = {}
    for label in _ordered(result, means, standings):
        mean, interval, n, skipped = own_summaries[label]
        scores[label] = Score(
            mean=None if mean is None else decimals(mean),
            ci95=None if interval is None else (decimals(interval[0]), decimals(interval[1])),
            n=n,
            skipped=skipped,
            letters=result.letters.get(label, ""),
            best=label == result.best,
            tie=label in result.ties,
            skill=skills.get(label),
        )
    # Not validated: all parts were made or checked here, and a leaderboard may have a hundred
    # thousand pairs; to check them again would take about a second.
    return Column.model_construct(
        metric=key,
        title=_title(variant, key),
        family=variant.family,
        higher_is_better=variant.higher_is_better,
        version=variant.version,
        proxy=variant.proxy,
        aspect=METRICS[variant.name].aspect if variant.name in METRICS else None,
        ranked=_is_ranked(measured),
        cells=scores,
        pairs=_pairs(result),
        power=power_of(values, result, above),
    )


def _title(variant: Variant, key: str) -> str:
    """Return what tables call a column; one of a former version says so."""
    title = title_of(variant.name) + key.removeprefix(variant.name)
    outdated = key == variant.name and is_outdated(variant.name, variant.version)
    return f"{title} (version {variant.version})" if outdated else title


def _ordered(
    result: Tournament, means: Mapping[str, float | None], standings: Mapping[str, Standing]
) -> list[str]:
    """Order labels: those above the line by their means, those below, controls."""
    sign = 1 if result.higher_is_better is False else -1

    def sort_key(label: str) -> tuple[int, bool, float, str]:
        mean = means[label]
        shelf = SHELVES.index(standings[label])
        return shelf, mean is None, sign * (mean or 0.0), label

    return sorted(means, key=sort_key)


def _random_label(group: Group) -> str | None:
    """Return the label of scores drawn at random, if they are on the table."""
    return next((e.label for e in group.entries if e.is_random), None)


def _attainable(variant: Variant) -> float | None:
    return METRICS[variant.name].attainable if variant.name in METRICS else None


def _pairs(result: Tournament) -> tuple[Pair, ...]:
    """Return the tests of all pairs, rounded; effects are turned so that + is better."""
    duels = result.duels
    p_values = all_significant([duel.test.p for duel in duels], 4)
    adjusted = all_significant([duel.adjusted for duel in duels], 4)
    # Plus zero: minus zero would be written as -0.0.
    effects = (np.round([result.effect(duel) for duel in duels], 4) + 0.0).tolist()
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

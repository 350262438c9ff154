"""The explainers of a comparison: one for each word typed, all under the same conditions."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import decimals
from faithbench.core.spec import parse_explainers
from faithbench.records.conditions import Conditions, describe_field, describe_value, differing
from faithbench.records.rows import ResultRow
from faithbench.records.schema import MetricFacts, Record
from faithbench.records.store import StoredRecord, matching, stored_records


@dataclass(frozen=True)
class Entrant:
    """An explainer under the label it is called by; its records differ in their seeds alone."""

    label: str
    records: tuple[StoredRecord, ...]

    @property
    def conditions(self) -> Conditions:
        """The conditions that all its records share."""
        return self.records[0].conditions

    @property
    def metrics(self) -> dict[str, MetricFacts]:
        """The facts of the metrics that all its records have."""
        names = set.intersection(*(set(stored.record.metrics) for stored in self.records))
        first = self.records[0].record.metrics
        return {name: facts for name, facts in first.items() if name in names}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of all its records."""
        return tuple(seed for stored in self.records for seed in stored.record.seeds)

    def values(self, metric: str, ids: Sequence[str]) -> list[float | None]:
        """Return one value per example: the mean over seeds, None where no seed has any."""
        tables = [{row.id: row for row in stored.rows} for stored in self.records]
        if len(tables) == 1:
            return [tables[0][example].values[metric] for example in ids]
        return [pooled([table[example] for table in tables], metric) for example in ids]


def pooled(rows: Sequence[ResultRow], metric: str) -> float | None:
    """Return the mean over all seeds of one example's rows, one row per record."""
    # Not the mean of the records' means: a record of three seeds weighs more than one of one.
    by_record = [row.by_seed.get(metric, (row.values[metric],)) for row in rows]
    present = [value for values in by_record for value in values if value is not None]
    return decimals(math.fsum(present) / len(present)) if present else None


def find_entrants(
    words: Sequence[str], task: str, results: Path, metrics: Sequence[str] = ()
) -> tuple[Entrant, ...]:
    """Find the records that words stand for, preferring those that have all of `metrics`.

    Only records under the same conditions are chosen; those that differ in their seeds alone
    are one entrant. Where that leaves several choices, or none, the error says what to name.
    """
    named = _split(words)
    records = stored_records(results, task)
    candidates = []
    for word in named:
        matches = matching(word, records, str(results))
        complete = [s for s in matches if set(metrics) <= set(s.record.metrics)]
        # Without one that has the metrics, `chosen_metrics` later says which record lacks what.
        candidates.append(complete or matches)
    shared = _shared_conditions(named, candidates)
    labels = _labels(named, candidates)
    return tuple(
        Entrant(label, _by_seed(word, [s for s in matches if s.conditions == shared]))
        for label, word, matches in zip(labels, named, candidates, strict=True)
    )


def _split(words: Sequence[str]) -> list[str]:
    """Split lists with commas, as `run` takes them; a file's path stays whole."""
    labels: list[str] = []
    for word in words:
        if word.endswith(".json"):
            labels.append(word)
            continue
        for name, settings in parse_explainers(word):
            typed = ",".join(f"{key}={value}" for key, value in settings.items())
            labels.append(f"{name}:{typed}" if typed else name)
    twice = [label for index, label in enumerate(labels) if label in labels[:index]]
    if twice:
        raise FaithbenchError(f"{twice[0]!r} is named twice; name two different explainers")
    if len(labels) < 2:
        raise FaithbenchError(
            f"compare needs two explainers or more, found {', '.join(labels) or 'none'}; "
            "name another"
        )
    return labels


def _shared_conditions(
    words: Sequence[str], candidates: Sequence[Sequence[StoredRecord]]
) -> Conditions:
    """Return the only conditions under which every word has a record."""
    choices = [list(dict.fromkeys(s.conditions for s in records)) for records in candidates]
    shared = [first for first in choices[0] if all(first in others for others in choices[1:])]
    if len(shared) == 1:
        return shared[0]
    together = " and ".join(words)
    if shared:
        fields = differing(shared)
        firsts = [next(s for s in candidates[0] if s.conditions == choice) for choice in shared]
        files = [f"{s.path} ({_describe(s.conditions, fields)})" for s in firsts]
        raise FaithbenchError(
            f"{together} can be compared in {len(shared)} ways, which differ in "
            f"{', '.join(map(describe_field, fields))}; name one record by its file in place of "
            f"{words[0]}: {' or '.join(files)}"
        )
    nearest = _nearest(choices)
    fields = differing(nearest)
    each = [f"{word} {_describe(c, fields)}" for word, c in zip(words, nearest, strict=True)]
    raise FaithbenchError(
        f"cannot compare {together}: their records differ in "
        f"{', '.join(map(describe_field, fields))} ({'; '.join(each)}); "
        "run them again with the same options, all in one `faithbench run`"
    )


def _nearest(choices: Sequence[Sequence[Conditions]]) -> list[Conditions]:
    """Return one choice per word, so that they differ in the fewest fields.

    Records of runs long past may differ in everything; the error should speak of those that a
    single option would make comparable.
    """
    nearest = [
        [first, *(min(cs, key=lambda c: len(differing([first, c]))) for cs in choices[1:])]
        for first in choices[0]
    ]
    return min(nearest, key=lambda chosen: len(differing(chosen)))


def _describe(conditions: Conditions, fields: Sequence[str]) -> str:
    return ", ".join(describe_value(conditions, name) for name in fields)


def _by_seed(word: str, records: Sequence[StoredRecord]) -> tuple[StoredRecord, ...]:
    """Return records in the order of their seeds, refusing two that cannot be pooled."""
    for first, second in combinations(records, 2):
        conflict = _conflict(first.record, second.record)
        if conflict is not None:
            raise FaithbenchError(
                f"{word} means several records, which differ in {conflict}; "
                f"name one by its file in place of {word}: {first.path} or {second.path}"
            )
    return tuple(sorted(records, key=lambda stored: stored.record.seeds))


def _conflict(first: Record, second: Record) -> str | None:
    """Return what differs between two records of an explainer, None if only their seeds do."""
    # The gap is measured, so it may differ between seeds of the same explainer.
    one, two = (r.explainer.model_dump(exclude={"largest_gap"}) for r in (first, second))
    if one != two:
        keys = [key for key in one if one[key] != two[key]]
        return "; ".join(f"{key} ({one[key]} and {two[key]})" for key in keys)
    if not set(first.seeds) & set(second.seeds):
        return None
    if first.seeds != second.seeds:
        seeds, others = (", ".join(map(str, r.seeds)) for r in (first, second))
        return f"seeds that overlap ({seeds} and {others})"
    odd = sorted(set(first.metrics) ^ set(second.metrics))
    return f"metrics ({', '.join(odd)} only in one; or choose with --metric)" if odd else "nothing"


def _labels(words: Sequence[str], candidates: Sequence[Sequence[StoredRecord]]) -> list[str]:
    """Return the words; a file is called by its name, with the digest only if that is needed."""
    files = [
        records[0].path.stem if word.endswith(".json") else None
        for word, records in zip(words, candidates, strict=True)
    ]
    short = [
        word if stem is None else re.sub(r"-[0-9a-f]{8}$", "", stem)
        for word, stem in zip(words, files, strict=True)
    ]
    return [
        label if stem is None or short.count(label) == 1 else stem
        for label, stem in zip(short, files, strict=True)
    ]

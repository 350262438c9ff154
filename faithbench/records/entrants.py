"""Who takes part in a comparison: for each word one explainer, all on the same terms."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import decimals
from faithbench.core.spec import parse_explainers
from faithbench.records.conditions import Conditions, describe_field, describe_value, differing
from faithbench.records.rows import ResultRow
from faithbench.records.schema import MetricFacts
from faithbench.records.store import StoredRecord, matching, stored_records


@dataclass(frozen=True)
class Entrant:
    """An explainer under the label it is called by; its records differ in their seeds alone."""

    label: str
    records: tuple[StoredRecord, ...]

    @property
    def terms(self) -> Conditions:
        """Return the terms that all its records share."""
        return self.records[0].terms

    @property
    def metrics(self) -> dict[str, MetricFacts]:
        """Return the facts of the metrics that all its records have."""
        names = set.intersection(*(set(stored.record.metrics) for stored in self.records))
        first = self.records[0].record.metrics
        return {name: facts for name, facts in first.items() if name in names}

    @property
    def seeds(self) -> tuple[int, ...]:
        """Return the seeds of all its records."""
        return tuple(seed for stored in self.records for seed in stored.record.seeds)

    def values(self, metric: str, ids: Sequence[str]) -> list[float | None]:
        """Return one value per example: the mean over seeds, None where no seed has any."""
        tables = [{row.id: row for row in stored.rows} for stored in self.records]
        if len(tables) == 1:
            return [tables[0][i].values[metric] for i in ids]
        return [pooled([table[i] for table in tables], metric) for i in ids]


def pooled(rows: Sequence[ResultRow], metric: str) -> float | None:
    """Return the mean over all seeds of several records of one example."""
    found = [row.by_seed.get(metric, (row.values[metric],)) for row in rows]
    present = [value for own in found for value in own if value is not None]
    return decimals(math.fsum(present) / len(present)) if present else None


def find_entrants(
    words: Sequence[str], task: str, results: Path, metrics: Sequence[str] = ()
) -> tuple[Entrant, ...]:
    """Find the records that words mean, like with like, those with the `metrics` named.

    Records that differ in their seeds alone are one entrant.
    """
    named = _split(words)
    records = stored_records(results, task)
    meant = [matching(word, records, str(results)) for word in named]
    with_metrics = [[s for s in own if set(metrics) <= set(s.record.metrics)] for own in meant]
    # One without the metrics at all is kept, for an error that says so.
    found = [some or own for some, own in zip(with_metrics, meant, strict=True)]
    terms = _shared(named, found)
    labels = _labels(named, found)
    return tuple(
        Entrant(label, _by_seed(word, [s for s in own if s.terms == terms]))
        for label, word, own in zip(labels, named, found, strict=True)
    )


def _split(words: Sequence[str]) -> list[str]:
    """Split lists with commas, as `run` takes them; a file's path stays whole."""
    found: list[str] = []
    for word in words:
        if word.endswith(".json"):
            found.append(word)
            continue
        for name, settings in parse_explainers(word):
            told = ",".join(f"{key}={value}" for key, value in settings.items())
            found.append(f"{name}:{told}" if told else name)
    twice = [word for place, word in enumerate(found) if word in found[:place]]
    if twice:
        raise FaithbenchError(f"{twice[0]!r} is named twice; name two different explainers")
    if len(found) < 2:
        raise FaithbenchError(
            f"compare needs two explainers or more, found {', '.join(found) or 'none'}; "
            "name another"
        )
    return found


def _shared(words: Sequence[str], found: Sequence[Sequence[StoredRecord]]) -> Conditions:
    """Return the one set of terms on which every word has a record."""
    kinds = [list(dict.fromkeys(stored.terms for stored in own)) for own in found]
    shared = [terms for terms in kinds[0] if all(terms in own for own in kinds[1:])]
    if len(shared) == 1:
        return shared[0]
    if shared:
        fields = differing(shared)
        choices = [next(s for s in found[0] if s.terms == terms) for terms in shared]
        raise FaithbenchError(
            f"{' and '.join(words)} can be compared in {len(shared)} ways, which differ in "
            f"{_listed(fields)}; name one record by its file in place of {words[0]}: "
            + " or ".join(f"{c.path} ({_values(c.terms, fields)})" for c in choices)
        )
    nearest = _nearest(kinds)
    fields = differing(nearest)
    told = [f"{word} {_values(terms, fields)}" for word, terms in zip(words, nearest, strict=True)]
    raise FaithbenchError(
        f"cannot compare {' and '.join(words)}: their records differ in {_listed(fields)} "
        f"({'; '.join(told)}); run them again with the same options, all in one `faithbench run`"
    )


def _nearest(kinds: Sequence[Sequence[Conditions]]) -> list[Conditions]:
    """Return, one per word, the terms that differ in the fewest fields from the first word's."""
    choices = [
        [first, *(min(own, key=lambda t: len(differing([first, t]))) for own in kinds[1:])]
        for first in kinds[0]
    ]
    return min(choices, key=lambda chosen: len(differing(chosen)))


def _by_seed(word: str, own: Sequence[StoredRecord]) -> tuple[StoredRecord, ...]:
    """Return records of different seeds, refusing two that are about the same."""
    for place, one in enumerate(own):
        for other in own[place + 1 :]:
            if _explainer(one) != _explainer(other) or _seeds(one) & _seeds(other):
                raise FaithbenchError(
                    f"{word} means several records, which differ in {_difference(one, other)}; "
                    f"name one by its file in place of {word}: {one.path} or {other.path}"
                )
    return tuple(sorted(own, key=lambda stored: stored.record.seeds))


def _seeds(stored: StoredRecord) -> set[int]:
    return set(stored.record.seeds)


def _listed_seeds(stored: StoredRecord) -> str:
    return ", ".join(map(str, stored.record.seeds))


def _explainer(stored: StoredRecord) -> dict[str, object]:
    return stored.record.explainer.model_dump(exclude={"largest_gap"})


def _difference(one: StoredRecord, other: StoredRecord) -> str:
    """Say in what two records of an explainer differ: settings, versions, seeds or metrics."""
    facts, rival = _explainer(one), _explainer(other)
    if facts != rival:
        keys = [key for key in facts if facts[key] != rival[key]]
        return "; ".join(f"{key} ({facts[key]} and {rival[key]})" for key in keys)
    if one.record.seeds != other.record.seeds:
        return f"seeds that overlap ({_listed_seeds(one)} and {_listed_seeds(other)})"
    odd = sorted(set(one.record.metrics) ^ set(other.record.metrics))
    return f"metrics ({', '.join(odd)} only in one; or choose with --metric)" if odd else "nothing"


def _labels(words: Sequence[str], found: Sequence[Sequence[StoredRecord]]) -> list[str]:
    """Return the words, and for files what is in their names; the whole stem if that is taken."""
    short = [
        re.sub(r"-[0-9a-f]{8}$", "", own[0].path.stem) if word.endswith(".json") else word
        for word, own in zip(words, found, strict=True)
    ]
    return [
        own[0].path.stem if word.endswith(".json") and short.count(label) > 1 else label
        for label, word, own in zip(short, words, found, strict=True)
    ]


def _listed(fields: Sequence[str]) -> str:
    return ", ".join(describe_field(name) for name in fields)


def _values(terms: Conditions, fields: Sequence[str]) -> str:
    return ", ".join(describe_value(terms, name) for name in fields)

"""Compare recorded explainers: summaries, tests of all pairs, and the examples that differ most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.metrics.registry import METRICS
from faithbench.records.entrants import Entrant
from faithbench.records.rows import ResultRow
from faithbench.records.schema import MetricFacts
from faithbench.stats.summaries import Column, Summary, summarise
from faithbench.stats.tournament import Tournament, tournament


@dataclass(frozen=True)
class Comparison:
    """One metric of several explainers: a summary of each, and the tests of all pairs."""

    metric: str
    facts: MetricFacts
    summaries: dict[str, Summary]
    tournament: Tournament


@dataclass(frozen=True)
class Difference:
    """An example with its tokens, and what each explainer that has a value scores on it."""

    id: str
    tokens: tuple[str, ...]
    values: dict[str, float]

    @property
    def spread(self) -> float:
        """Return how far the highest value is from the lowest."""
        return round(max(self.values.values()) - min(self.values.values()), 12)


def compare(metric: str, facts: MetricFacts, table: Mapping[str, Column]) -> Comparison:
    """Summarise and test one metric, given each explainer's values of the same examples."""
    summaries = {label: summarise(values) for label, values in table.items()}
    return Comparison(metric, facts, summaries, tournament(table, facts.higher_is_better))


def most_different(
    table: Mapping[str, Column], rows: Sequence[ResultRow], count: int = 10
) -> list[Difference]:
    """Return the examples with the widest spread of values, widest first."""
    found = []
    for place, row in enumerate(rows):
        values = {label: v for label, own in table.items() if (v := own[place]) is not None}
        if len(values) > 1:
            found.append(Difference(row.id, row.tokens, values))
    found = [difference for difference in found if difference.spread > 0]
    return sorted(found, key=lambda difference: -difference.spread)[:count]


def chosen_metrics(wanted: Sequence[str], entrants: Sequence[Entrant]) -> list[str]:
    """Return the metrics to compare: those named, or all that every record has with a value."""
    every = {name: facts.family for e in entrants for name, facts in e.metrics.items()}
    known = {name: every[name] for name in _names(entrants)}
    families = set(known.values())
    shared = [n for n in known if all(n in e.metrics for e in entrants)]
    filled = [n for n in shared if any(e.metrics[n].n for e in entrants)]
    found: list[str] = []
    for name in wanted:
        if name in known:
            _check_metric(name, entrants)
            found.append(name)
        elif name in families or name == "all":
            found += [n for n in filled if name in (known[n], "all")]
        elif name in METRICS:
            raise FaithbenchError(
                f"metric {name!r} is in none of these records; "
                f"run the explainers again with --metrics {name}"
            )
        else:
            raise unknown("metric in these records", name, [*known, *families, "all"])
    if not found:
        raise FaithbenchError(
            f"no metric of {', '.join(wanted)} has a value in all of these records; "
            f"run the explainers again with the same --metrics (there are {', '.join(known)})"
        )
    for name in found:
        _check_version(name, entrants)
    return list(dict.fromkeys(found))


def _names(entrants: Sequence[Entrant]) -> list[str]:
    """Return the metrics of all records in the catalogue's order; others follow by name."""
    places = {name: place for place, name in enumerate(METRICS)}
    found = {name for entrant in entrants for name in entrant.metrics}
    return sorted(found, key=lambda name: (places.get(name, len(places)), name))


def _check_metric(name: str, entrants: Sequence[Entrant]) -> None:
    for entrant in entrants:
        if name not in entrant.metrics:
            raise FaithbenchError(
                f"metric {name!r} is not in the record of {entrant.label} "
                f"({entrant.records[0].path}); run it again with --metrics {name}"
            )


def _check_version(name: str, entrants: Sequence[Entrant]) -> None:
    stored = [(e.label, s.record) for e in entrants for s in e.records]
    kinds = {"versions": {label: str(record.metrics[name].version) for label, record in stored}}
    if name == "iou_semantic":
        kinds["encoders"] = {label: str(record.protocol.encoder) for label, record in stored}
    for kind, found in kinds.items():
        if len(set(found.values())) > 1:
            told = ", ".join(f"{value} of {label}" for label, value in found.items())
            raise FaithbenchError(
                f"metric {name!r} has several {kind} here ({told}), which are never mixed; run "
                "them again together, or choose other metrics with --metric"
            )

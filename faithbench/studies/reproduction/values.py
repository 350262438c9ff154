"""What a cell came to: a mean with its interval, and the values that tests compare."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from faithbench.records.store import StoredRecord
from faithbench.stats.summaries import summarise


@dataclass(frozen=True)
class RecordRef:
    """A record behind a cell: its path below the folder of results, and the digest of its rows."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Measured:
    """A number of ours, in the paper's unit.

    `values` has what each example came to, the mean over the seeds, and is empty where there is no
    value per example; `by_seed` has the mean of each seed. `n` counts what the mean is of.
    """

    mean: float
    interval: tuple[float, float] | None
    n: int
    values: Mapping[str, float]
    by_seed: tuple[float, ...]
    records: tuple[RecordRef, ...] = ()


@dataclass(frozen=True)
class Missing:
    """A number that is not there, and why."""

    why: str


Value = Measured | Missing


def measured(
    by_seed: Sequence[Mapping[str, float | None]],
    scale: float = 1.0,
    records: Sequence[RecordRef] = (),
) -> Value:
    """Return what values by example come to, one mapping per seed.

    An example's value is the mean over the seeds that have one.
    """
    ids = list(dict.fromkeys(name for seed in by_seed for name in seed))
    values: dict[str, float] = {}
    for name in ids:
        present = [v for seed in by_seed if (v := seed.get(name)) is not None]
        if present:
            values[name] = scale * math.fsum(present) / len(present)
    if not values:
        return Missing("no example has a value")
    mean, interval, n, _ = summarise(list(values.values()))
    means = []
    for seed in by_seed:
        there = [value for value in seed.values() if value is not None]
        if there:
            means.append(scale * math.fsum(there) / len(there))
    assert mean is not None  # there are values
    return Measured(mean, interval, n, values, tuple(means), tuple(records))


def of_seeds(
    scores: Sequence[float],
    scale: float = 1.0,
    records: Sequence[RecordRef] = (),
    values: Mapping[str, float] | None = None,
    n: int | None = None,
) -> Measured:
    """Return what one number per seed comes to; `values` are those of examples, if there are."""
    scaled = [scale * score for score in scores]
    _, interval, _, _ = summarise(scaled)
    return Measured(
        math.fsum(scaled) / len(scaled),
        interval,
        n or len(scaled),
        values or {},
        tuple(scaled),
        tuple(records),
    )


def row_values(
    stored: StoredRecord, metric: str, label: int | None
) -> list[dict[str, float | None]]:
    """Return a metric's value of each example, under each seed of a record.

    `aopc@30` and `lodds@30` are read off the curve, which is the mean over the seeds. With a
    `label`, only examples of that label count.
    """
    rows = [row for row in stored.rows if label is None or row.label == label]
    name, at, share = metric.partition("@")
    if at:
        place = int(share) // 10 - 1
        return [{row.id: _at(name, row.probability, row.curve[place]) for row in rows}]
    seeds = max((len(row.by_seed.get(metric, ())) for row in rows), default=0)
    if seeds < 2:
        return [{row.id: row.values[metric] for row in rows}]
    return [{row.id: row.by_seed[metric][seed] for row in rows} for seed in range(seeds)]


def _at(name: str, before: float, after: float) -> float:
    if name == "aopc":
        return before - after
    # A probability of 0 is rounding: as small as rows have digits.
    return math.log(max(after, 1e-9) / max(before, 1e-9))

"""Show what the examples of each published table can tell apart, and what more of them would.

    python benchmarks/power.py [--records leaderboard/records] [--no-write]

A difference is detectable if the paired test finds it with a chance of 80% after Holm over all
pairs of the column (faithbench/stats/power.py), for the median spread of all pairs of explainers
above the line. With other numbers of examples the spread is taken to stay, and so are the means.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tabulate import tabulate

from faithbench.cli.options import PASSED
from faithbench.leaderboard.board import Column
from faithbench.leaderboard.gather import Group, find_records, groups_in, parts_of
from faithbench.leaderboard.names import table_ids
from faithbench.leaderboard.standings import is_above
from faithbench.leaderboard.tables import TableContent, content_of
from faithbench.metrics.registry import METRICS, title_of
from faithbench.records.passed import accepted_submissions

COLUMNS = ("aopc", "sufficiency", "delta_log_odds_neg", "iou_semantic")
SIZES = (50, 100, 200, 500, 1000)


class Study(NamedTuple):
    """A table of the board: its name, its records' values, and what was made of them."""

    name: str
    group: Group
    content: TableContent


def studies_of(records: Path, submissions: Path) -> list[Study]:
    """Read all records, and return their tables as the board has them, with the values."""
    parts = parts_of(find_records(records, accepted_submissions(submissions, PASSED).accepted))
    groups = [group for part in parts for group in groups_in(part)]
    names = table_ids([group.conditions for group in groups])
    named = sorted(zip(names, groups, strict=True), key=lambda pair: pair[0])
    return [Study(name, group, content_of(group)) for name, group in named]


def column_of(study: Study, metric: str) -> Column | None:
    """Return a metric's column of its newest version, if the table has one with power."""
    columns = [c for c in study.content.columns if c.metric.split("@")[0] == metric and c.power]
    return max(columns, key=lambda column: column.version, default=None)


def gaps_of(study: Study, metric: str, column: Column) -> list[float]:
    """Return how far all pairs of explainers above the line differ, on the examples of both."""
    above = {row.label for row in study.content.rows if is_above(row.standing)}
    values = [
        entry.values(metric)
        for entry in study.group.entries
        if entry.label in above & set(column.cells)
    ]
    known = [own for own in values if not np.isnan(own).all()]
    changes = [a - b for a, b in combinations(known, 2)]
    present = [change[~np.isnan(change)] for change in changes]
    return [abs(float(change.mean())) if len(change) else 0.0 for change in present]


def detectable_at(least: float, n: int, other: int) -> float:
    """Return the smallest detectable difference with another number of examples.

    It falls with the root of their number; a metric that is not defined on some examples is taken
    to be missing on the same share.
    """
    return least * math.sqrt(n / other)


def power_line(
    study: Study, metric: str, column: Column, sizes: Sequence[int] = SIZES
) -> tuple[str, ...]:
    """Return a table's line: now, as the board has it, and with other numbers of examples."""
    assert column.power is not None
    n = study.group.conditions.n
    gaps = np.array(gaps_of(study, metric, column))
    least = [detectable_at(column.power.detectable, n, size) for size in sizes]
    return (
        study.name,
        str(n),
        _shown(column.power.detectable, column.power.separated),
        *(_shown(value, float((gaps > value).mean())) for value in least),
    )


def metric_part(studies: Sequence[Study], metric: str) -> str:
    """Return the figures of one metric, with a line per table of the board."""
    found = [(study, column_of(study, metric)) for study in studies]
    known = [(study, column) for study, column in found if column is not None]
    lines = [power_line(study, metric, column) for study, column in known]
    headers = ("table", "n", "now", *(f"n = {size}" for size in SIZES))
    # Records may be older than the formula: the numbers are then those of the old one.
    versions = sorted({column.version for _, column in known} - {METRICS[metric].version})
    stale = f" (version {', '.join(map(str, versions))})" if versions else ""
    table = tabulate(lines, headers, tablefmt="github", disable_numparse=True)
    return f"### {title_of(metric)}{stale}\n\n{table}"


def body_of(studies: Sequence[Study]) -> str:
    """Return the figures of all metrics, and what they mean."""
    said = (
        "Smallest difference of two means that is found with a chance of 80% after Holm, and in "
        "brackets the share of pairs of explainers above the line that differ by more: with the "
        "examples of the table, and with as many as the column says."
    )
    return "\n\n".join(
        [said + finding(studies), *(metric_part(studies, metric) for metric in COLUMNS)]
    )


def finding(studies: Sequence[Study]) -> str:
    """Return in a sentence what AOPC can tell apart, by the number of examples of a table."""
    by_size: dict[int, list[float]] = {}
    shares = {}
    for study in studies:
        column = column_of(study, "aopc")
        if column is not None and column.power is not None:
            by_size.setdefault(study.group.conditions.n, []).append(column.power.detectable)
            shares[study.name] = column.power.separated
    if not shares:
        return ""
    told = [f"{_range(least)} with {n} examples" for n, least in sorted(by_size.items())]
    fewest = min(shares, key=lambda name: (shares[name], name))
    return (
        f" Of AOPC this is {', '.join(told)}; the fewest pairs are told apart on {fewest} "
        f"({shares[fewest]:.0%})."
    )


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.3f}", f"{max(values):.3f}"
    return low if low == high else f"{low} to {high}"


def main() -> None:
    """Read the published records, and keep what their tables can tell apart."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, default=Path("leaderboard/records"))
    parser.add_argument("--submissions", type=Path, default=Path("submissions"))
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    body = body_of(studies_of(options.records, options.submissions))
    if options.no_write:
        print(body)
    else:
        from tables import write_section

        write_section("Power", "python benchmarks/power.py", body, timed=False)


def _shown(least: float, separated: float) -> str:
    return f"{least:.3f} ({separated:.0%})"


if __name__ == "__main__":
    main()

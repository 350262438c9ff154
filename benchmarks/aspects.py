"""Show which faithfulness metrics are one measurement, and what tau_loo makes of a planted word.

    python benchmarks/aspects.py [--records leaderboard/records] [--no-write]
    python benchmarks/aspects.py --planted [--texts 100] [--models 3] [--no-write]

The first form reads published records: Spearman's rho over explainers between each metric's means
and AOPC's. All values are turned so that higher is better, and missing ones are filled in as in
the ranking. Tables of bundled data and of another operator than mask are left out.

The second trains tiny BERTs for which one word of a text decides the class. Whoever puts that
word first has found everything there is to find; the order of the other words means nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from tabulate import tabulate

from faithbench.cli.options import PASSED
from faithbench.core.types import Floats
from faithbench.explainers.registry import is_control
from faithbench.leaderboard.gather import Entry, Group, find_records, groups_in, parts_of
from faithbench.leaderboard.names import table_ids
from faithbench.leaderboard.rankings import USUAL_OPERATOR
from faithbench.metrics.kinds import Metric
from faithbench.metrics.registry import METRICS
from faithbench.records.passed import accepted_submissions
from faithbench.testing.planted import planted_data, planted_model, puts_first

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model

REFERENCE = "aopc"
FEW = ("aopc", "sufficiency", "agreement", "delta_log_odds_neg", "tau_loo")
"""One metric or two of each aspect, and the one that has none: compared with each other."""
ALIKE = 0.8
"""A median rho from which on two metrics are said to give nearly the same order."""


@dataclass(frozen=True)
class Compared:
    """The values of one table by metric: an array per explainer, higher for better."""

    name: str
    controls: frozenset[str]
    values: dict[str, dict[str, Floats]]

    def means(self, metric: str, controls: bool = False) -> dict[str, float]:
        """Return each explainer's mean over the examples that have a value."""
        left_out = frozenset() if controls else self.controls
        arrays = self.values.get(metric, {})
        return {
            label: float(np.nanmean(values))
            for label, values in arrays.items()
            if label not in left_out and not np.isnan(values).all()
        }


def compared_tables(records: Path, submissions: Path) -> list[Compared]:
    """Read all records, and return the tables that the ranking counts, by name."""
    parts = parts_of(find_records(records, accepted_submissions(submissions, PASSED).accepted))
    groups = [group for part in parts for group in groups_in(part)]
    names = table_ids([group.conditions for group in groups])
    tables = [_compared(name, group) for name, group in zip(names, groups, strict=True)
              if group.conditions.source != "bundled"
              and group.conditions.operator == USUAL_OPERATOR]  # fmt: skip
    return sorted(tables, key=lambda table: table.name)


def _compared(name: str, group: Group) -> Compared:
    values: dict[str, dict[str, Floats]] = {}
    for metric in directed_metrics():
        measured = [entry for entry in group.entries if _has(entry, metric)]
        arrays = {entry.label: turned(entry.values(metric.name), metric) for entry in measured}
        if any(not np.isnan(array).all() for array in arrays.values()):
            values[metric.name] = arrays
    controls = frozenset(entry.label for entry in group.entries if entry.is_control)
    return Compared(name, controls, values)


def directed_metrics() -> list[Metric]:
    """Return the faithfulness metrics that have a better side, in the catalogue's order."""
    return [
        metric
        for metric in METRICS.values()
        if metric.family == "faithfulness" and metric.higher_is_better is not None
    ]


def _has(entry: Entry, metric: Metric) -> bool:
    """Return whether all records of an explainer hold the metric in its present version."""
    facts = [record.metrics.get(metric.name) for record in entry.records]
    return all(own is not None and own.version == metric.version for own in facts)


def turned(values: Floats, metric: Metric) -> Floats:
    """Return values with higher for better, and blanks filled in where the ranking does."""
    filled = values if metric.blank is None else np.where(np.isnan(values), metric.blank, values)
    return filled if metric.higher_is_better else -filled


def rho(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Return Spearman's rho over the explainers of both; None of fewer than three, or no order."""
    shared = sorted(set(first) & set(second))
    return _rho(np.array([first[x] for x in shared]), np.array([second[x] for x in shared]))


def _rho(first: Floats, second: Floats) -> float | None:
    from scipy.stats import rankdata

    if len(first) < 3 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(rankdata(first), rankdata(second))[0, 1])


def example_rho(table: Compared, metric: str) -> float | None:
    """Return the mean over examples of rho over explainers, controls left out."""
    first, second = table.values.get(REFERENCE, {}), table.values.get(metric, {})
    labels = sorted((set(first) & set(second)) - table.controls)
    if not labels:
        return None
    of_aopc, of_metric = (np.array([own[x] for x in labels]) for own in (first, second))
    known = ~np.isnan(of_aopc) & ~np.isnan(of_metric)
    found = [
        _rho(a[both], b[both]) for a, b, both in zip(of_aopc.T, of_metric.T, known.T, strict=True)
    ]
    return mean_of(found)


def mean_of(values: Sequence[float | None]) -> float | None:
    """Return the mean of what there is."""
    present = [value for value in values if value is not None]
    return float(np.mean(present)) if present else None


def median_of(values: Sequence[float | None]) -> float | None:
    """Return the median of what there is."""
    present = [value for value in values if value is not None]
    return float(np.median(present)) if present else None


def against_aopc(tables: Sequence[Compared]) -> str:
    """Return a line for each metric: its aspect, and rho with AOPC on every table."""
    lines = []
    for metric in directed_metrics():
        if metric.name == REFERENCE or not any(metric.name in table.values for table in tables):
            continue
        by_table = [rho(table.means(REFERENCE), table.means(metric.name)) for table in tables]
        with_controls = [
            rho(table.means(REFERENCE, True), table.means(metric.name, True)) for table in tables
        ]
        by_example = [example_rho(table, metric.name) for table in tables]
        medians = map(median_of, (by_table, with_controls, by_example))
        lines.append((metric.name, metric.aspect or "-", *map(_shown, (*medians, *by_table))))
    lines.sort(key=lambda line: (line[1] == "-", line[1] != "comprehensiveness", line[1]))
    headers = ("metric", "aspect", "median", "with controls", "per example")
    return _table(lines, (*headers, *(table.name for table in tables)))


def among_few(tables: Sequence[Compared]) -> str:
    """Return the median rho over tables of every two of a few metrics."""
    lines = []
    for index, first in enumerate(FEW[:-1]):
        medians = [
            median_of([rho(table.means(first), table.means(second)) for table in tables])
            for second in FEW[index + 1 :]
        ]
        lines.append((first, *[""] * index, *map(_shown, medians)))
    return _table(lines, ("median over tables", *FEW[1:]))


def published_body(tables: Sequence[Compared]) -> str:
    """Return both tables of correlations, and what they show."""
    by_metric = {
        metric.name: [rho(table.means(REFERENCE), table.means(metric.name)) for table in tables]
        for metric in directed_metrics()
        if metric.name != REFERENCE
    }
    medians = {name: median_of(own) for name, own in by_metric.items()}
    known = {name: median for name, median in medians.items() if median is not None}
    alike = {name: median for name, median in known.items() if round(median, 2) >= ALIKE}
    others = [f"`{name}` {known[name]:.2f}" for name in known if name not in alike]
    said = (
        "Spearman's rho over explainers (controls left out, but for one column) between the means "
        "of a metric and those of AOPC, values turned so that higher is better. `per example` is "
        "the mean over examples of rho on one example; both it and `median` are medians over "
        "tables."
    )
    if alike:
        said += (
            f" {len(alike)} metrics order explainers nearly as AOPC does, with a median of "
            f"{min(alike.values()):.2f} to {max(alike.values()):.2f}: "
            f"{', '.join(f'`{name}`' for name in alike)}. A mean rank over all of them would count "
            "one order many times."
        )
    if others:
        said += f" Orders of their own: {', '.join(others)}."
    return "\n\n".join([said, against_aopc(tables), among_few(tables)])


# The planted word.

SHOWN = ("tau_loo", "aopc", "sufficiency")
EXPLAINERS = (
    "random,first-tokens,attention,rollout,attention-x-gradient,gae,grad-cam,cam,attcat,gradient,"
    "input-x-gradient,integrated-gradients,smoothgrad,gradient-shap,deep-shap,lrp,lrp-partial,"
    "lrp-rollout,attn-lrp,alti,value-zeroing,occlusion,leave-one-out,lime:samples=64,"
    "kernel-shap:samples=64"
)


class Verdict(NamedTuple):
    """What an explainer does with planted words: how often it puts them first, and its means.

    `means` has a value per model.
    """

    label: str
    first: float
    means: dict[str, list[float]]

    @property
    def is_finder(self) -> bool:
        """Return whether this is a method that puts the word first on every text."""
        return self.first == 1 and not is_control(self.label)


def verdicts(models: Sequence[Model], data: Dataset, explainers: str = EXPLAINERS) -> list[Verdict]:
    """Explain the texts to every model, and return what became of their words, AOPC first."""
    import faithbench as fb

    runs = [
        fb.evaluate(
            data.task, explainers, model=model, data=data, metrics=",".join(SHOWN), seeds=1, jobs=1
        )
        for model in models
    ]
    found = [
        Verdict(
            label,
            float(
                np.mean(
                    [puts_first(row.tokens, row.scores) for run in runs for row in run[label].rows]
                )
            ),
            {m: [run.records[label].metrics[m].mean or 0.0 for run in runs] for m in SHOWN},
        )
        for label in runs[0].labels
    ]
    return sorted(
        found,
        key=lambda v: (not v.is_finder, is_control(v.label), -fmean(v.means["tau_loo"]), v.label),
    )


def chance_tau(lengths: Sequence[int]) -> float:
    """Return the expected tau of orders with the right word first and the rest at random.

    Of n (n - 1) / 2 pairs of words the n - 1 with the planted one are right, and the others
    cancel out.
    """
    return fmean(2 / n for n in lengths)


def planted_body(found: Sequence[Verdict], lengths: Sequence[int]) -> str:
    """Return a line per explainer, and what the lines show; `lengths` are those of the texts."""
    models = len(found[0].means["tau_loo"])
    finders = [verdict for verdict in found if verdict.is_finder]
    methods = [verdict for verdict in found if not is_control(verdict.label)]
    said = (
        f"Tiny BERTs for which one word decides, trained from {models} seeds, and {len(lengths)} "
        "texts: the share of texts on which an explainer puts that word first, its means of AOPC "
        "and sufficiency, and its `tau_loo` on each model. "
        f"{len(finders)} of {len(methods)} explainers put the word first on every text"
    )
    if finders:
        taus = [(tau, verdict.label) for verdict in finders for tau in verdict.means["tau_loo"]]
        (low, worst), (high, best) = min(taus), max(taus)
        said += (
            f". AOPC gives all of them {_range(finders, 'aopc')}; `tau_loo`, which grades the "
            f"order of words that do not matter, gives them anything from {_shown(low, 3)} "
            f"({worst}) to {_shown(high, 3)} ({best}). The word first and the "
            f"others at random would give {chance_tau(lengths):.3f}"
        )
    headers = ("explainer", "word first", "aopc", "sufficiency")
    lines = [
        (
            verdict.label,
            f"{verdict.first:.1%}",
            *(_shown(fmean(verdict.means[m]), 3) for m in ("aopc", "sufficiency")),
            *(_shown(tau, 3) for tau in verdict.means["tau_loo"]),
        )
        for verdict in found
    ]
    taus_of = [f"tau_loo, model {index + 1}" for index in range(models)]
    return f"{said}.\n\n{_table(lines, (*headers, *taus_of))}"


def _range(found: Sequence[Verdict], metric: str) -> str:
    values = sorted({f"{fmean(verdict.means[metric]):.3f}" for verdict in found})
    return values[0] if len(values) == 1 else f"{values[0]} to {values[-1]}"


def main() -> None:
    """Read published records, or plant words, and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, default=Path("leaderboard/records"))
    parser.add_argument("--submissions", type=Path, default=Path("submissions"))
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    if options.planted:
        title, command = "Aspects: a planted word", "python benchmarks/aspects.py --planted"
        models = [planted_model(seed) for seed in range(options.models)]
        data = planted_data(options.texts)
        lengths = [len(example.text.split()) for example in data.examples]
        body = planted_body(verdicts(models, data), lengths)
    else:
        title, command = "Aspects of faithfulness", "python benchmarks/aspects.py"
        body = published_body(compared_tables(options.records, options.submissions))
    if options.no_write:
        print(body)
    else:
        from tables import write_section

        write_section(title, command, body, timed=False)


def _shown(value: float | None, digits: int = 2) -> str:
    # Plus 0 after rounding: a minus in front of 0.000 says nothing.
    return "-" if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def _table(lines: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()

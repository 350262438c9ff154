"""Compare recorded explainers: summaries, tests of all pairs, and the examples that differ most.

Everything that `faithbench compare` says, as values that show themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.shown import Shown
from faithbench.core.text import wrap_name
from faithbench.metrics.kinds import Trained
from faithbench.metrics.registry import METRICS, is_tested_by_mean, needs_encoder, title_of
from faithbench.records.entrants import Entrant
from faithbench.records.rows import ResultRow
from faithbench.records.schema import MetricFacts
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.summaries import Column, Summary, summarise
from faithbench.stats.tournament import Duel, Tournament, tournament

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.table import Table

_TEST_NAMES = {
    "signed-rank": "Wilcoxon signed-rank",
    "McNemar": "exact McNemar (0/1 values)",
    "paired t": "paired t (effect: mean / sd of the differences)",
}


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """One metric of several explainers: a summary of each by label, and the tests of all pairs."""

    metric: str
    facts: MetricFacts
    summaries: dict[str, Summary]
    tournament: Tournament

    def __rich__(self) -> Group:
        """Return the means, the tests in 80 columns, and what could not be tested."""
        from rich.console import Group
        from rich.text import Text

        title = Text(self._title, style="bold")
        parts: list[RenderableType] = [title, _rich(_MEANS, self._means())]
        if self._tests:
            parts += [Text(self._tests, style="dim"), _rich(_TESTS, self._duels())]
        return Group(*parts, *map(Text, self._untested()))

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        tests = f"<p>{escape(self._tests)}</p>{_html(_TESTS, self._duels())}" if self._tests else ""
        untested = "".join(f"<p>{escape(line)}</p>" for line in self._untested())
        return f"<p><b>{escape(self._title)}</b></p>{_html(_MEANS, self._means())}{tests}{untested}"

    @property
    def _title(self) -> str:
        better = {True: ", higher is better", False: ", lower is better", None: ""}
        direction = better[self.facts.higher_is_better]
        return f"{title_of(self.metric)} ({self.facts.family}{direction})"

    @property
    def _tests(self) -> str:
        """Return which tests were done; empty if none was."""
        tested = [duel for duel in self.tournament.duels if duel.adjusted is not None]
        names = sorted({_TEST_NAMES[duel.test.name] for duel in tested}, reverse=True)
        return f"{' and '.join(names)}, Holm over {len(tested)}:" if tested else ""

    def _means(self) -> Iterator[_Line]:
        result = self.tournament
        for label in result.order:
            mean, interval, n, skipped = self.summaries[label]
            leads = label == result.best or label in result.ties
            yield (
                (label, leads),
                ("-" if mean is None else f"{mean:.3f}", leads),
                ("-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}", False),
                (result.letters[label] or "-", False),
                (str(n), False),
                (str(skipped), False),
            )

    def _duels(self) -> Iterator[_Line]:
        """Lay out the tests; effects are + where the first is better."""
        for duel in self.tournament.duels:
            test, adjusted = duel.test, duel.adjusted
            if test.p is not None and adjusted is not None:
                yield (
                    (duel.first, False),
                    (duel.second, False),
                    (str(test.n), False),
                    (f"{test.p:.2g}", False),
                    (f"{adjusted:.2g}", adjusted < ALPHA),
                    (f"{self.tournament.effect(duel):+.2f}", False),
                )

    def _untested(self) -> Iterator[str]:
        duels: Sequence[Duel] = self.tournament.duels
        for duel in duels:
            if duel.adjusted is None:
                yield f"no test of {duel.first} and {duel.second}: {duel.test.reason}"


_Line = tuple[tuple[str, bool], ...]
"""The cells of a line, and which of them are bold."""
_MEANS = {"": 32, "mean": 0, "interval": 0, "ties": -1, "n": 0, "skipped": 0}
_TESTS = {"first": 22, "second": 22, "n": 0, "p": 0, "after Holm": 0, "effect": 0}
"""Columns, and the width of those that hold names; 0 stands for numbers, -1 for letters."""


def _rich(columns: Mapping[str, int], lines: Iterator[_Line]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    widths = list(columns.values())
    for title, width in columns.items():
        most = width if width > 0 else None
        table.add_column(
            title, justify="left" if width else "right", overflow="fold", max_width=most
        )
    for line in lines:
        cells = zip(line, widths, strict=True)
        table.add_row(
            *(
                Text(wrap_name(text, width) if width > 0 else text, style="bold" if bold else "")
                for (text, bold), width in cells
            )
        )
    return table


def _html(columns: Mapping[str, int], lines: Iterator[_Line]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{f'<b>{escape(t)}</b>' if bold else escape(t)}</td>" for t, bold in line)
        + "</tr>"
        for line in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


@dataclass(frozen=True)
class Difference:
    """An example with its tokens, and the value of each explainer that has one, by label."""

    id: str
    tokens: tuple[str, ...]
    values: dict[str, float]

    @property
    def spread(self) -> float:
        """The highest value minus the lowest."""
        # Rounded, so that noise of the subtraction neither orders examples nor tells equal
        # values apart: values themselves have nine decimals.
        return round(max(self.values.values()) - min(self.values.values()), 12)


def compare(metric: str, facts: MetricFacts, table: Mapping[str, Column]) -> Comparison:
    """Summarise and test one metric.

    `table` has each explainer's values by label, of the same examples in the same order. The
    direction of `facts` decides which mean is best; with none, there is no best one.
    """
    summaries = {label: summarise(values) for label, values in table.items()}
    by_mean = is_tested_by_mean(metric)
    tests = tournament(table, facts.higher_is_better, by_mean=by_mean)
    return Comparison(metric, facts, summaries, tests)


def most_different(
    table: Mapping[str, Column], rows: Sequence[ResultRow], count: int = 10
) -> list[Difference]:
    """Return at most `count` examples with the widest spread of values, widest first.

    `rows` are those of any one explainer, in the order of the values in `table`. Examples on
    which fewer than two explainers have a value, or all have the same, are left out; examples
    of the same spread stay in the order of the rows.
    """
    differences = []
    for index, row in enumerate(rows):
        by_label = {label: column[index] for label, column in table.items()}
        values = {label: value for label, value in by_label.items() if value is not None}
        if len(values) > 1:
            differences.append(Difference(row.id, row.tokens, values))
    apart = [difference for difference in differences if difference.spread > 0]
    return sorted(apart, key=lambda difference: -difference.spread)[:count]


def chosen_metrics(wanted: Sequence[str], entrants: Sequence[Entrant]) -> list[str]:
    """Return the metrics to compare: those that `wanted` names, by name, by family or as `all`.

    A family, or `all`, stands for the metrics that every entrant has and that have a value for
    at least one. A metric asked for by name must be in every record. Each must have one version.
    """
    families = {name: facts.family for e in entrants for name, facts in e.metrics.items()}
    known, groups = metric_names(entrants), {*families.values(), "all"}
    shared = [name for name in known if all(name in e.metrics for e in entrants)]
    filled = [name for name in shared if any(e.metrics[name].n for e in entrants)]
    chosen: list[str] = []
    for name in wanted:
        if name in known:
            _check_recorded(name, entrants)
            chosen.append(name)
        elif name in groups:
            chosen += [n for n in filled if name in (families[n], "all")]
        elif name in METRICS:
            raise FaithbenchError(
                f"metric {name!r} is in none of these records; {_advice(name, 'the explainers')}"
            )
        else:
            raise unknown("metric in these records", name, [*known, *groups])
    if not chosen:
        raise FaithbenchError(
            f"no metric of {', '.join(wanted)} has a value in all of these records; "
            f"run the explainers again with the same --metrics (there are {', '.join(known)})"
        )
    for name in chosen:
        _check_version(name, entrants)
    return list(dict.fromkeys(chosen))


def metric_names(entrants: Sequence[Entrant]) -> list[str]:
    """Return the metrics of any entrant in the registry's order; unknown ones follow by name."""
    order = {name: index for index, name in enumerate(METRICS)}
    names = {name for entrant in entrants for name in entrant.metrics}
    return sorted(names, key=lambda name: (order.get(name, len(order)), name))


def _check_recorded(name: str, entrants: Sequence[Entrant]) -> None:
    for entrant in entrants:
        if name not in entrant.metrics:
            raise FaithbenchError(
                f"metric {name!r} is not in the record of {entrant.label} "
                f"({entrant.records[0].path}); {_advice(name, 'it')}"
            )


def _advice(name: str, what: str) -> str:
    """Return what to do for a metric that a record lacks."""
    made = METRICS.get(name)
    if isinstance(made, Trained):
        return f"run {made.command} for each explainer, with the same options"
    return f"run {what} again with --metrics {name}"


def _check_version(name: str, entrants: Sequence[Entrant]) -> None:
    """Refuse values of different formulas, or of neighbours that different encoders found."""
    records = [(e.label, stored.record) for e in entrants for stored in e.records]
    facts = {"versions": [(str(record.metrics[name].version), label) for label, record in records]}
    if needs_encoder(name):
        facts["encoders"] = [(str(record.protocol.encoder), label) for label, record in records]
    for fact, labelled in facts.items():
        if len({value for value, _ in labelled}) > 1:
            each = ", ".join(f"{value} of {label}" for value, label in dict.fromkeys(labelled))
            raise FaithbenchError(
                f"metric {name!r} has several {fact} here ({each}), which are never mixed; run "
                "them again together, or choose other metrics with --metric"
            )

"""What `faithbench compare` says: means and ties, paired tests, where explainers differ most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from faithbench.display import TITLES
from faithbench.entrants import Entrant, find_entrants
from faithbench.errors import FaithbenchError, unknown
from faithbench.metrics import METRICS
from faithbench.records import MetricFacts
from faithbench.rows import Row
from faithbench.stats import ALPHA, Column, Summary, summarise
from faithbench.tasks import load_task
from faithbench.tournament import Duel, Tournament, tournament

WIDTH = 80
LEGEND = (
    "Explainers that share a letter are not significantly different (p >= .05 after Holm over the "
    "pairs of the table); the best mean and those not significantly worse are bold. "
    "Intervals are bootstrap, 95%. Effect is rank-biserial: +1 if the first is the "
    "higher on all examples."
)


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


def compare_command(*, explainers: list[str], task: str, results: Path, metrics: str) -> None:
    """Compare recorded explainers and print what is found."""
    console = Console()
    name = load_task(task).name if task.endswith(".toml") else task
    wanted = [part.strip() for part in metrics.split(",")]
    entrants = find_entrants(explainers, name, results, [m for m in wanted if m != "all"])
    chosen = chosen_metrics(wanted, entrants)
    ids = [row.id for row in entrants[0].records[0].rows]
    for line in _heading(entrants):
        console.print(line)
    for metric in chosen:
        table = {entrant.label: entrant.values(metric, ids) for entrant in entrants}
        for part in _report(compare(metric, entrants[0].metrics[metric], table)):
            console.print(part, highlight=False)
    console.print(Text(LEGEND, style="dim"))
    for part in _examples(entrants, chosen[0], ids):
        console.print(part)


def compare(metric: str, facts: MetricFacts, table: Mapping[str, Column]) -> Comparison:
    """Summarise and test one metric, given each explainer's values of the same examples."""
    summaries = {label: summarise(values) for label, values in table.items()}
    return Comparison(metric, facts, summaries, tournament(table, facts.higher_is_better))


def most_different(
    table: Mapping[str, Column], rows: Sequence[Row], count: int = 10
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


def _heading(entrants: Sequence[Entrant]) -> Iterator[Text]:
    terms = entrants[0].terms
    yield Text.assemble(
        (f"{terms.task} ({terms.source}, {terms.split}, n = {terms.n})", "bold"),
        f"; model {terms.model}, {terms.dtype}; erased by {terms.operator}",
    )
    for entrant in entrants:
        if len(entrant.seeds) > 1:
            yield Text(f"{entrant.label}: mean over seeds {', '.join(map(str, entrant.seeds))}")
    left = [n for n in _names(entrants) if any(n not in e.metrics for e in entrants)]
    if left:
        yield Text(f"not in all records, and left out: {', '.join(left)}", style="dim")


def _report(found: Comparison) -> Iterator[RenderableType]:
    yield Text()
    yield _title(found.metric, found.facts)
    yield _means(found)
    duels = found.tournament.duels
    tested = [duel for duel in duels if duel.adjusted is not None]
    if tested:
        kinds = sorted({_KINDS[duel.test.name] for duel in tested}, reverse=True)
        yield Text(f"{' and '.join(kinds)}, Holm over {len(tested)}:", style="dim")
        yield _tests(tested)
    for duel in duels:
        if duel.adjusted is None:
            yield Text(f"no test of {duel.first} and {duel.second}: {duel.test.reason}")


_KINDS = {"signed-rank": "Wilcoxon signed-rank", "McNemar": "exact McNemar (0/1 values)"}


def _title(metric: str, facts: MetricFacts) -> Text:
    better = {True: ", higher is better", False: ", lower is better", None: ""}
    name = TITLES.get(metric, metric)
    return Text(f"{name} ({facts.family}{better[facts.higher_is_better]})", style="bold")


def _means(found: Comparison) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("", overflow="fold", max_width=32)
    for title in ("mean", "interval", "ties", "n", "skipped"):
        table.add_column(title, justify="left" if title == "ties" else "right", overflow="fold")
    result = found.tournament
    for label in result.order:
        mean, interval, n, skipped = found.summaries[label]
        bold = "bold" if label == result.best or label in result.ties else ""
        table.add_row(
            Text(label, style=bold),
            Text("-" if mean is None else f"{mean:.3f}", style=bold),
            "-" if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}",
            result.letters[label] or "-",
            str(n),
            str(skipped),
        )
    return table


def _tests(duels: Sequence[Duel]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False)
    for title in ("first", "second"):
        table.add_column(title, overflow="fold", max_width=22)
    for title in ("n", "p", "after Holm", "effect"):
        table.add_column(title, justify="right", no_wrap=True)
    for duel in duels:
        test, adjusted = duel.test, duel.adjusted
        if test.p is not None and adjusted is not None:
            after = Text(f"{adjusted:.2g}", style="bold" if adjusted < ALPHA else "")
            numbers = (str(test.n), f"{test.p:.2g}", after, f"{test.effect:+.2f}")
            table.add_row(Text(duel.first), Text(duel.second), *numbers)
    return table


def _examples(entrants: Sequence[Entrant], metric: str, ids: Sequence[str]) -> Iterator[Text]:
    table = {e.label: e.values(metric, ids) for e in entrants}
    found = most_different(table, entrants[0].records[0].rows)
    if not found:
        return
    yield Text(
        f"\nThe {len(found)} examples on which they differ most in {TITLES.get(metric, metric)} "
        "(--metric names another):",
        style="bold",
    )
    for difference in found:
        yield Text(difference.id)
        told = [f"{label} {value:.3f}" for label, value in difference.values.items()]
        yield Text("  " + ", ".join(told))
        # A terminal would obey control characters.
        tokens = re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", " ".join(difference.tokens))
        line = Text(f"  {tokens}", style="dim")
        line.truncate(WIDTH, overflow="ellipsis")
        yield line

"""What a person sees: tables that fit 80 columns, heat maps, progress."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBars
from rich.table import Table
from rich.text import Text

from faithbench.core.types import Progress
from faithbench.data.kinds import KINDS
from faithbench.metrics.cost import COSTS, Cost
from faithbench.metrics.registry import title_of
from faithbench.records.schema import MetricFacts, Record

_FIRST_LINE, _NEXT_LINE = 2, 10
"""Seconds before the first plain line of progress, and between two of them."""


@contextmanager
def progress_on(console: Console, first: str = "starting") -> Iterator[Progress]:
    """Yield a reporter: bars on a terminal, a plain line now and then elsewhere.

    Until the first report, a moving bar says `first`: a terminal shows something at once.
    """
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with ProgressBars(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        waiting = bars.add_task(first, total=None)
        known: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            bars.update(waiting, visible=False)
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done)

        yield report


def _plain_lines(console: Console) -> Progress:
    due = time.monotonic() + _FIRST_LINE
    due_by_name: dict[str, float] = {}

    def report(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now > due_by_name.get(what, due):
            due_by_name[what] = now + _NEXT_LINE
            console.print(f"{what}: {done}/{total}", highlight=False)

    return report


_ACROSS = 4


def results_tables(records: Sequence[tuple[str, Record]]) -> list[Table]:
    """Lay out one line per metric and one column per explainer, four across at most.

    A cell holds the mean and half the 95% interval, or "-" where no example has a value; the
    best mean of all explainers is bold.
    """
    first = records[0][1]
    names = list(first.metrics)
    best = {name: _best([r.metrics[name] for _, r in records]) for name in names}
    tables = []
    for start in range(0, len(records), _ACROSS):
        block = records[start : start + _ACROSS]
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
        table.add_column("", no_wrap=True)
        for label, _ in block:
            table.add_column(Text(label), justify="right", overflow="fold", max_width=14)
        family = ""
        for name in names:
            facts = first.metrics[name]
            if facts.family != family:
                family = facts.family
                table.add_row(Text(family + (" (proxy)" if facts.proxy else ""), style="dim"))
            cells = [_mean(record.metrics[name], best[name]) for _, record in block]
            table.add_row(f"{title_of(name)} {_arrow(facts)}", *cells)
        table.add_row(Text("speed", style="dim"))
        for cost in COSTS:
            table.add_row(f"{title_of(cost.name)} ↓", *(_cost(cost, record) for _, record in block))
        tables.append(table)
    tables[
        0
    ].title = f"{first.task.name} ({first.task.source}, {first.task.split}, n = {first.task.n})"
    tables[0].title_style = "bold"
    return tables


def caption(record: Record) -> str:
    """Say what the table's numbers are, and of which model."""
    model = record.model
    right = KINDS[record.task.kind].right_noun
    accuracy = "" if model.accuracy is None else f", {right} {model.accuracy:.3f}"
    moved = model.precision and (
        f"; {model.dtype} moves f by {model.precision.largest_shift:.2g} at most "
        f"({model.precision.inputs} inputs)"
    )
    spans = record.task.spans
    unread = spans and spans.cut + spans.lost
    cut = f"; {model.truncated} texts were cut" if model.truncated else ""
    cut += f", with {unread} rationale spans" if cut and unread else ""
    drop = (
        ""
        if model.tpr_drop is None
        else f"; with the rationales erased it finds {abs(model.tpr_drop):.1%} "
        f"{'more' if model.tpr_drop < 0 else 'fewer'} labels (tpr_drop)"
    )
    return (
        f"model {escape(model.name)}{accuracy}{moved or ''}{cut}{drop}; ± is half the 95% "
        "interval; speed is per example, the explainer alone"
    )


def _cost(cost: Cost, record: Record) -> str:
    """Write what one cost comes to in a record."""
    value = cost.score(record)
    if value is None:
        return "-"
    if cost.unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    return f"{value:.4g}" if cost.unit == "rows" else _seconds(value, cost.interval(record))


def _seconds(seconds: float, ends: tuple[float, float] | None) -> str:
    if seconds < 0.001:
        return "<.001"
    half = f" ±{_digits((ends[1] - ends[0]) / 2)}".replace("±0.", "±.") if ends else ""
    return _digits(seconds) + half


def _digits(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 0.1 else f"{seconds:.2f}"


def _arrow(facts: MetricFacts) -> str:
    return {True: "↑", False: "↓", None: ""}[facts.higher_is_better]


def _best(facts: Sequence[MetricFacts]) -> float | None:
    means = [f.mean for f in facts if f.mean is not None]
    if not means or facts[0].higher_is_better is None:
        return None
    return max(means) if facts[0].higher_is_better else min(means)


def _mean(facts: MetricFacts, best: float | None) -> Text:
    if facts.mean is None:
        return Text("-")
    half = None if facts.ci95 is None else (facts.ci95[1] - facts.ci95[0]) / 2
    spread = "" if half is None else f" ±{half:.3f}".replace("±0.", "±.")
    return Text(f"{facts.mean:.3f}{spread}", style="bold" if facts.mean == best else "")

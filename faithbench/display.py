"""What a person sees: tables that fit 80 columns, heat maps, progress."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from faithbench.records import MetricFacts, Record
from faithbench.types import Encoding, Floats
from faithbench.words import word_spans

Report = Callable[[str, int, int], None]


@contextmanager
def progress_on(console: Console) -> Iterator[Report]:
    """Yield a reporter: bars on a terminal, a plain line every ten seconds elsewhere."""
    if not console.is_terminal:
        yield _plain_lines(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bars:
        known: dict[str, TaskID] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in known:
                known[what] = bars.add_task(what, total=total)
            bars.update(known[what], completed=done)

        yield report


def _plain_lines(console: Console) -> Report:
    last = {"": time.monotonic()}

    def report(what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if done == total or now - last.get(what, last[""]) > 10:
            last[what] = now
            console.print(f"{what}: {done}/{total}", highlight=False)

    return report


def results_table(records: Sequence[tuple[str, Record]]) -> Table:
    """Lay out one line per explainer: metrics with intervals, seconds, forward rows, n."""
    first = records[0][1]
    task, model = first.task, first.model
    title = f"{task.name} ({task.source}, {task.split}, n = {task.n})"
    accuracy = "" if model.accuracy is None else f", accuracy {model.accuracy:.3f}"
    table = Table(title=title, title_style="bold")
    table.caption = (
        f"model {escape(model.name)}{accuracy}; ± is half the 95% interval; "
        "seconds and forward rows per example"
    )
    table.add_column("explainer", overflow="fold", min_width=16)
    for name, facts in first.metrics.items():
        title = f"{TITLES.get(name, name)} {_arrow(facts)}"
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True)
    table.add_column("n", justify="right", no_wrap=True)
    best = {name: _best([r.metrics[name] for _, r in records]) for name in first.metrics}
    for label, record in records:
        cells = [_mean(facts, best[name]) for name, facts in record.metrics.items()]
        seconds = record.timing.seconds_median
        table.add_row(
            label,
            *cells,
            "-" if seconds is None else f"{seconds:.2g}" if seconds < 0.1 else f"{seconds:.2f}",
            f"{record.cost.forwards_per_example:g}",
            str(record.task.n),
        )
    return table


TITLES = {"aopc": "AOPC", "lodds": "LOdds"}


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
    spread = "" if facts.ci95 is None else f" ±{(facts.ci95[1] - facts.ci95[0]) / 2:.3f}"
    return Text(f"{facts.mean:.3f}{spread}", style="bold" if facts.mean == best else "")


def heat_map(encoding: Encoding, scores: Floats) -> Text:
    """Colour a text by its tokens' scores: orange speaks for the prediction, blue against.

    The darker, the stronger, relative to the strongest token of the text. The two hues stay
    apart for readers who do not tell red from green. The second text of a pair follows on a
    line of its own.
    """
    example = encoding.example
    both = [part for part in (example.text, example.text_b) if part is not None]
    # A terminal would obey control characters, and Text would drop some and shift the rest.
    text = Text(re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", "\n".join(both)))
    strongest = float(abs(scores).max()) or 1.0
    words_before = len(word_spans(example.text))
    for token, score in zip(np.flatnonzero(encoding.erasable), scores, strict=True):
        start, end = encoding.spans[token]
        shift = len(example.text) + 1 if encoding.words[token] >= words_before else 0
        text.stylize(_shade(float(score) / strongest), start + shift, end + shift)
    return text


def _shade(strength: float) -> str:
    """Blend white into orange (positive) or blue (negative), with black text on top."""
    if abs(strength) < 0.05:
        return ""
    full = (230, 120, 20) if strength > 0 else (60, 130, 220)
    share = min(1.0, abs(strength))
    red, green, blue = (round(255 - share * (255 - c)) for c in full)
    return f"black on #{red:02x}{green:02x}{blue:02x}"

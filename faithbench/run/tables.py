"""Tables of results: of 80 columns in a terminal, and as HTML in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape_html

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from faithbench.core.shown import Shown
from faithbench.core.text import wrap_name
from faithbench.data.kinds import KINDS
from faithbench.metrics.cost import COSTS, Cost
from faithbench.metrics.registry import title_of
from faithbench.records.schema import MetricFacts, Record


@dataclass(frozen=True, repr=False)
class ResultsTable(Shown):
    """The results of several explainers under one task, each record with its label."""

    records: tuple[tuple[str, Record], ...]

    def __rich__(self) -> Group:
        """Return the tables that `faithbench run` prints, and what their numbers are."""
        note = Text.from_markup(caption(self.records[0][1]), style="dim")
        note.append(untimed(self.records))
        return Group(*results_tables(self.records), note)

    def _repr_html_(self) -> str:
        """Return one table with all explainers next to each other."""
        head = "".join(f"<th>{escape_html(label)}</th>" for label, _ in self.records)
        lines = "".join(map(_html_line, _lines(self.records, _best_means(self.records))))
        plain = Text.from_markup(caption(self.records[0][1])).plain
        note = escape_html(plain + untimed(self.records))
        return (
            f"<table><caption>{escape_html(_title(self.records[0][1]))}</caption>"
            f"<thead><tr><th></th>{head}</tr></thead><tbody>{lines}</tbody></table>"
            f"<p><small>{note}</small></p>"
        )


_COLUMN = 14
_ACROSS = 4  # explainers whose cells of "0.123 ±.045" fit 80 columns


def results_tables(records: Sequence[tuple[str, Record]]) -> list[Table]:
    """Lay out one line per metric and one column per explainer, at most four across.

    A cell holds the mean and half the 95% interval, or "-" where no example has a value; the
    best mean of all explainers is bold.
    """
    best = _best_means(records)
    tables = [
        _results_table(records[start : start + _ACROSS], best)
        for start in range(0, len(records), _ACROSS)
    ]
    tables[0].title = _title(records[0][1])
    tables[0].title_style = "bold"
    return tables


def _results_table(
    records: Sequence[tuple[str, Record]], best: Mapping[str, float | None]
) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("", no_wrap=True)
    for label, _ in records:
        name = Text(wrap_name(label, _COLUMN))
        table.add_column(name, justify="right", overflow="fold", max_width=_COLUMN)
    for line in _lines(records, best):
        table.add_row(*line)
    return table


def _lines(
    records: Sequence[tuple[str, Record]], best: Mapping[str, float | None]
) -> Iterator[list[Text]]:
    """Yield the lines of a table: a family alone, or a metric with a cell per explainer."""
    family = ""
    for name, facts in records[0][1].metrics.items():
        if facts.family != family:
            family = facts.family
            yield [Text(family + (" (proxy)" if facts.proxy else ""), style="dim")]
        cells = [_mean(record.metrics[name], best[name]) for _, record in records]
        yield [Text(f"{title_of(name)} {_arrow(facts)}"), *cells]
    yield [Text("speed", style="dim")]
    for cost in COSTS:
        costs = [Text(_cost(cost, record)) for _, record in records]
        yield [Text(f"{title_of(cost.name)} ↓"), *costs]


def _html_line(line: Sequence[Text]) -> str:
    """Return a row of an HTML table; the best cells stay bold."""
    head, *cells = line
    if not cells:
        return f'<tr><th colspan="99" style="text-align: left">{escape_html(head.plain)}</th></tr>'
    texts = [
        f"<b>{escape_html(c.plain)}</b>" if c.style == "bold" else escape_html(c.plain)
        for c in cells
    ]
    name = f'<td style="text-align: left">{escape_html(head.plain)}</td>'
    return f"<tr>{name}{''.join(f'<td>{text}</td>' for text in texts)}</tr>"


def _title(record: Record) -> str:
    task = record.task
    return f"{task.name} ({task.source}, {task.split}, n = {task.n})"


def _best_means(records: Sequence[tuple[str, Record]]) -> dict[str, float | None]:
    names = records[0][1].metrics
    return {name: _best([record.metrics[name] for _, record in records]) for name in names}


def caption(record: Record) -> str:
    """Return what the table's numbers are, and facts of the model that they depend on."""
    parts = [f"model {escape(record.model.name)}{_accuracy(record)}", *_model_notes(record)]
    parts += ["± is half the 95% interval", "speed is per example, the explainer alone"]
    return "; ".join(parts)


def untimed(records: Sequence[tuple[str, Record]]) -> str:
    """Return why the seconds of some records are "-", as words to append; empty if none are."""
    names = [label for label, record in records if record.timing.seconds_median is None]
    if not names:
        return ""
    if len(names) == len(records):
        return "; seconds were not asked for (--metrics speed)"
    return f"; no seconds of {', '.join(names)}: these scores were not computed by the run"


def _accuracy(record: Record) -> str:
    name = KINDS[record.task.kind].right_noun
    return "" if record.model.accuracy is None else f", {name} {record.model.accuracy:.3f}"


def _model_notes(record: Record) -> Iterator[str]:
    """Yield what half precision, cut texts and erased rationales do to the predictions."""
    model, spans = record.model, record.task.spans
    if model.precision:
        yield (
            f"{model.dtype} moves f by {model.precision.largest_shift:.2g} at most "
            f"({model.precision.inputs} inputs)"
        )
    if model.truncated:
        unread = spans.cut + spans.lost if spans else 0
        yield (
            f"{model.truncated} texts were cut"
            + (f", with {unread} rationale spans" if unread else "")
        )
    if model.tpr_drop is not None:
        yield (
            f"with the rationales erased it finds {abs(model.tpr_drop):.1%} "
            f"{'more' if model.tpr_drop < 0 else 'fewer'} labels (tpr_drop)"
        )


def _cost(cost: Cost, record: Record) -> str:
    """Return one cost of a record with its unit, or "-" where it was not measured."""
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

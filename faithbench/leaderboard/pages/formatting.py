"""Numbers, names and tables as pages write them; names come from data, and are escaped."""

from __future__ import annotations

from collections.abc import Sequence

from faithbench.core.text import plain
from faithbench.data.kinds import KINDS
from faithbench.leaderboard.board import Column, Score, Table
from faithbench.metrics.cost import COSTS, CostUnit

ARROWS = {True: "↑", False: "↓", None: ""}
MADE = "made by `faithbench leaderboard build`: change the records, not this file"

_COST_UNITS = {cost.name: cost.unit for cost in COSTS}

# Entities for dollars and @: GitHub looks for formulas and mentions in the text that markdown
# leaves, where a backslash would be gone.
_MARKDOWN = str.maketrans(
    {
        **{mark: f"\\{mark}" for mark in "\\`*_{}[]()#|~!"},
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "$": "&#36;",
        "@": "&#64;",
    }
)


def markdown(text: str) -> str:
    """Escape text for markdown: no table, link, code, formula or HTML can come of it."""
    safe = plain(text).translate(_MARKDOWN)
    # Bare addresses would become links.
    return safe.replace("://", "&#58;//").replace("www.", "www&#46;")


def number(value: float | None, digits: int = 3) -> str:
    """Write a number without the zero before the point: .533, -1.615, .000."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    # What rounds to zero has no sign: -0.0001 is .000.
    sign = "-" if value < 0 and float(text) else ""
    size = text.removeprefix("-")
    return sign + (size[1:] if size.startswith("0.") else size)


def cost(unit: CostUnit, value: float | None) -> str:
    """Write a cost: memory in megabytes, else a few digits."""
    if value is None:
        return "-"
    if unit == "bytes":
        return f"{value / 1e6:.0f} MB"
    if unit == "seconds":
        return f"{value:.2g}"
    return f"{value:.4g}" if value < 10000 else f"{value:.0f}"


def mean_text(column: Column, score: Score) -> str:
    """Write the mean of a score."""
    return _value_text(column, score.mean)


def interval_text(column: Column, score: Score) -> str:
    """Write the interval of a score, or nothing where there is none."""
    if score.ci95 is None:
        return ""
    low, high = (_value_text(column, end) for end in score.ci95)
    return f"[{low}, {high}]"


def _value_text(column: Column, value: float | None) -> str:
    if column.metric in _COST_UNITS:
        return cost(_COST_UNITS[column.metric], value)
    return number(value)


def bold(text: str, score: Score) -> str:
    """Mark the best score and those tied with it."""
    return f"**{text}**" if (score.best or score.tie) and score.mean is not None else text


def grid(rows: Sequence[Sequence[str]], headers: Sequence[str], names: int = 1) -> str:
    """Lay out a table of markdown; its texts are escaped already.

    The first columns, as many as `names`, are aligned to the left, and numbers to the right.
    """
    rule = [*("---" for _ in headers[:names]), *("---:" for _ in headers[names:])]
    return "\n".join(f"| {' | '.join(texts)} |" for texts in (headers, rule, *rows))


def labels_in(columns: Sequence[Column]) -> list[str]:
    """Return the labels of all explainers in some columns, in the order of the first."""
    return list(dict.fromkeys(label for column in columns for label in column.cells))


def shelved(table: Table, labels: Sequence[str]) -> list[str]:
    """Order labels as the table's rows are: by place, then those below the line, then controls."""
    order = {row.label: index for index, row in enumerate(table.entrants)}
    return sorted(labels, key=lambda label: order.get(label, len(order)))


def power_line(table: Table, columns: Sequence[Column]) -> str:
    """Tell the smallest difference that a table's examples show; not escaped, or empty."""
    known = [(column.title, column.power) for column in columns if column.power is not None]
    if not known:
        return ""
    texts = [f"{title} {number(power.detectable)}" for title, power in known]
    first = known[0]
    return (
        f"Smallest difference that {table.n} examples show (chance of 80%, after Holm): "
        f"{', '.join(texts)}. By {first[0]}, {first[1].separated:.0%} of the pairs above the line "
        "differ by more."
    )


def heading(column: Column) -> str:
    """Write a column's title, its direction, and whether it is a proxy; not escaped."""
    arrow = ARROWS[column.higher_is_better]
    return " ".join(part for part in (column.title, arrow, "proxy" * column.proxy) if part)


def pairs_tested(column: Column) -> int:
    """Return the number of pairs with a test, which is what Holm's method adjusts for."""
    return sum(pair.adjusted is not None for pair in column.pairs)


def about(table: Table) -> str:
    """Describe in a line the conditions of a table; not escaped."""
    right = KINDS[table.kind].right_noun
    accuracy = "" if table.accuracy is None else f", {right} {number(table.accuracy)}"
    parts = [
        f"{table.n} examples of {table.task} version {table.task_version} ({table.split} split, "
        f"{table.source} data {table.data_sha256[:6]})",
        f"model {table.model} ({table.model_sha256[:6]}, {table.dtype}{accuracy})",
        f"erased by {table.operator}" + (f" ({table.erasure_token})" * bool(table.erasure_token)),
        f"long texts: {table.long}" + (f" ({table.truncated} cut)" * bool(table.truncated)),
        f"protocol {table.protocol}",
    ]
    if table.rationale == "human":
        parts.append("rationales marked by people")
    elif table.rationale == "proxy":
        parts.append("proxy rationales")
    if table.tpr_drop is not None:
        direction = "more" if table.tpr_drop < 0 else "fewer"
        share = f"{abs(table.tpr_drop):.1%}"
        parts.append(f"without the rationales the model finds {share} {direction} labels")
    return "; ".join(parts)


def counted(count: int, thing: str) -> str:
    """Write a number of things: 1 table, 2 tables."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"

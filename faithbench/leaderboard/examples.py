"""Examples for looking at: one text with the scores of all explainers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from faithbench.core.text import without_controls
from faithbench.leaderboard.board import ShownExample
from faithbench.leaderboard.gather import Entry, Group
from faithbench.records.rows import ResultRow

MOST = 8
"""So many examples a table shows at most, and fewer where texts are long."""
TOKENS = 1500
"""About so many tokens a table shows in all, but two examples at least."""

Rows = Mapping[str, ResultRow]


def shown_examples(group: Group) -> tuple[ShownExample, ...]:
    """Choose examples of which all explainers keep scores, spread evenly over the ids.

    Who was submitted has no say in the choice, and is shown where it has scores.
    """
    rows = {c.label: c.sheets[0].scored for c in group.contenders}
    chosen = [c for c in group.contenders if c.submission is None] or list(group.contenders)
    shared = set.intersection(*(set(rows[c.label]) for c in chosen))
    # A text is the same for all of the same model, unless somebody wrote the rows by hand.
    ids = sorted(i for i in shared if len({rows[c.label][i].tokens for c in chosen}) == 1)
    if not ids:
        return ()
    length = np.mean([len(rows[chosen[0].label][i].tokens) for i in ids])
    count = min(len(ids), max(2, min(MOST, int(TOKENS / length))))
    places = np.linspace(0, len(ids) - 1, count).round().astype(int)
    return tuple(_shown(ids[place], group, chosen[0], rows) for place in places)


def _shown(example: str, group: Group, model: Entry, rows: Mapping[str, Rows]) -> ShownExample:
    row, record = rows[model.label][example], model.first
    own = {
        c.label: rows[c.label][example].scores
        for c in group.contenders
        if example in rows[c.label] and rows[c.label][example].tokens == row.tokens
    }
    people = [own[c.label] for c in group.contenders if c.is_human and c.label in own]
    return ShownExample(
        id=without_controls(example),
        tokens=tuple(without_controls(token) for token in row.tokens),
        said=_said(record.model.labels, row.target),
        truth=_said(record.model.labels, row.label) if record.task.kind != "qa" else "",
        right=row.right,
        probability=round(row.probability, 6),
        scores={label: _scaled(scores) for label, scores in own.items()},
        rationale=tuple(score > 0 for score in people[0]) if people else (),
    )


def _said(labels: Sequence[str], target: int | tuple[int, int]) -> str:
    """Name a class; of an answer the rows keep the place in the input, not the words."""
    if isinstance(target, tuple):
        return "answer"
    return without_controls(labels[target]) if 0 <= target < len(labels) else str(target)


def _scaled(scores: Sequence[float]) -> tuple[float, ...]:
    largest = max(map(abs, scores)) or 1.0
    return tuple(round(score / largest, 3) + 0.0 for score in scores)

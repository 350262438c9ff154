"""Examples to look at: one text with the scores of all explainers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from faithbench.core.text import without_controls
from faithbench.data.kinds import KINDS
from faithbench.leaderboard.board import ShownExample
from faithbench.leaderboard.gather import Entry, Group
from faithbench.records.rows import ResultRow

MAX_EXAMPLES = 8
"""Number of examples a table shows, at most."""
MAX_TOKENS = 1500
"""Number of tokens a table shows in all, about: fewer examples where texts are long."""
MIN_EXAMPLES = 2
"""Number of examples a table shows however long they are, if it has as many."""

RowsById = Mapping[str, ResultRow]


def shown_examples(group: Group) -> tuple[ShownExample, ...]:
    """Choose examples of which all explainers keep scores, spread evenly over the ids.

    Submissions have no say in the choice, and are shown where they have scores.
    """
    rows = {entry.label: entry.record_values[0].scored for entry in group.entries}
    choosing = [e for e in group.entries if e.submission is None] or list(group.entries)
    shared = set.intersection(*(set(rows[entry.label]) for entry in choosing))
    # The tokens are the same for all explainers of a model, unless rows were written by hand.
    ids = sorted(i for i in shared if len({rows[e.label][i].tokens for e in choosing}) == 1)
    if not ids:
        return ()
    length = np.mean([len(rows[choosing[0].label][i].tokens) for i in ids])
    wanted = max(MIN_EXAMPLES, min(MAX_EXAMPLES, int(MAX_TOKENS / length)))
    indices = np.linspace(0, len(ids) - 1, min(len(ids), wanted)).round().astype(int)
    return tuple(_shown_example(ids[index], group, choosing, rows) for index in indices)


def _shown_example(
    example: str, group: Group, choosing: Sequence[Entry], rows: Mapping[str, RowsById]
) -> ShownExample:
    """Return one example; prediction and tokens are those in the rows of the first that choose."""
    row, record = rows[choosing[0].label][example], choosing[0].first
    kind = KINDS[record.task.kind]
    scores = {
        entry.label: rows[entry.label][example].scores
        for entry in group.entries
        if example in rows[entry.label] and rows[entry.label][example].tokens == row.tokens
    }
    # Rows of older records do not tell the words of an answer, those of newer ones do.
    alike = [rows[entry.label][example] for entry in choosing]
    answer = next((r.answer for r in alike if r.answer and r.target == row.target), "")
    name = kind.name_target(record.model.labels, row.target)
    people = [scores[e.label] for e in group.entries if e.is_human and e.label in scores]
    return ShownExample(
        id=without_controls(example),
        tokens=tuple(without_controls(token) for token in row.tokens),
        said=without_controls(": ".join(filter(None, (name, answer)))),
        truth=without_controls(kind.name_truth(record.model.labels, row.label)),
        right=row.right,
        probability=round(row.probability, 6),
        scores={label: _scaled(values) for label, values in scores.items()},
        rationale=tuple(score > 0 for score in people[0]) if people else (),
    )


def _scaled(scores: Sequence[float]) -> tuple[float, ...]:
    """Divide scores by their largest magnitude."""
    largest = max(map(abs, scores)) or 1.0
    # Plus zero: minus zero would be written as -0.0.
    return tuple(round(score / largest, 3) + 0.0 for score in scores)

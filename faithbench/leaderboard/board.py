"""The board as data: every page, table and file of the leaderboard is made from it alone.

What is written here is published. Names of fields are keys in `leaderboard.json`, which is why
scores are called `cells` there and rows `entrants`; docstrings of models are descriptions in
`leaderboard.schema.json`. To change either is to change those files.
"""

from __future__ import annotations

import json
from typing import Final, Literal, NamedTuple

from faithbench.core.schema import Count, Facts
from faithbench.data.kinds import KindName
from faithbench.data.task_schema import Rationale, SourceName
from faithbench.metrics.registry import Family

BOARD_SCHEMA: Final = 1

# Schema 1 was published under these names; others may have made code from it.
_PUBLISHED_NAMES: Final = {"Score": "Cell", "BoardRow": "Entrant", "ShownExample": "Shown"}

Interval = tuple[float, float]


class Score(Facts):
    """One explainer's result on one metric.

    `letters` are its groups of ties: who shares one is not significantly different. `tie` marks
    who is not significantly worse than the best.
    """

    mean: float | None
    ci95: Interval | None
    n: Count
    skipped: Count
    letters: str
    best: bool
    tie: bool


class Pair(NamedTuple):
    """A paired test of two explainers: its p value, p after Holm over the table, and effect.

    A tuple, and so a list in JSON: a table of 28 explainers has 378 pairs for each metric.
    """

    first: str
    second: str
    test: str
    n: int
    p: float | None
    adjusted: float | None
    effect: float
    reason: str


class Column(Facts):
    """One metric of a table: a cell per explainer, best first, and the tests of all pairs.

    `metric` is unique in a table: one of which the records hold several versions, or that was
    measured with several encoders, has a column for each, named `aopc@2` or
    `iou_semantic@1 (encoder)`. `proxy` marks agreement with rationales that no person marked.
    Speed is measured on the explainer, not per example, so it has no tests.
    """

    metric: str
    title: str
    family: Family
    higher_is_better: bool | None
    version: int
    proxy: bool
    cells: dict[str, Score]
    pairs: tuple[Pair, ...]


class BoardRow(Facts):
    """An explainer of a table: who it is, what it cost, and how the prediction falls.

    `curve` is the mean probability with 0, 10, ..., 90% of the tokens erased. `seconds` are
    measured, and comparable only within one machine; rows through the network are counted. None
    of scores that were made elsewhere: nobody here counted them.
    """

    label: str
    name: str
    family: str
    package: str
    version: str
    settings: dict[str, bool | int | float | str]
    seeds: tuple[int, ...]
    submission: str | None
    records: tuple[str, ...]
    seconds: float | None
    seconds_ci95: Interval | None
    peak_memory_bytes: Count | None
    forwards: float | None
    backwards: float | None
    forward_equivalents: float | None
    curve: tuple[float, ...]

    @property
    def is_human(self) -> bool:
        """Return whether this is the rationale that people marked: a yardstick, not a method."""
        return self.name == "human"


class ShownExample(Facts):
    """One example with what each explainer says of it, for looking at.

    Scores are divided by the largest magnitude of the text. `rationale` marks the tokens that
    people marked; it is empty where nobody did.
    """

    id: str
    tokens: tuple[str, ...]
    said: str
    truth: str
    right: bool
    probability: float
    scores: dict[str, tuple[float, ...]]
    rationale: tuple[bool, ...]


class Table(Facts):
    """All explainers that were measured on the same terms.

    `id` is the task's name, with the source and more where tables of a task differ in them.
    """

    id: str
    task: str
    task_version: int
    title: str
    kind: KindName
    source: SourceName
    split: str
    n: Count
    data_sha256: str
    model: str
    weights_sha256: str
    dtype: str
    accuracy: float | None
    tpr_drop: float | None
    truncated: Count
    protocol: int
    operator: str
    erasure_token: str
    long: str
    rationale: Rationale
    entrants: tuple[BoardRow, ...]
    columns: tuple[Column, ...]
    shown: tuple[ShownExample, ...]


class Ranking(Facts):
    """Mean ranks over tables, of those explainers that are in all of them, best first.

    `over` names the rows that were ranked, as `<table>/<metric>`. `ci95` is a bootstrap
    interval over tables. `groups` are sets of explainers within the critical difference.
    """

    family: Family | Literal["overall"]
    over: tuple[str, ...]
    left_out: tuple[str, ...]
    mean_ranks: dict[str, float]
    ci95: dict[str, Interval | None]
    friedman_p: float | None
    critical_difference: float | None
    groups: tuple[tuple[str, ...], ...]
    reason: str


class ParetoPoint(Facts):
    """One explainer's mean faithfulness rank against its mean cost in forward equivalents."""

    label: str
    faithfulness_rank: float
    forward_equivalents: float
    front: bool


class Board(Facts):
    """The whole leaderboard; `digest` is that of the records it was made from."""

    board_schema: Literal[1]
    digest: str
    records: Count
    tables: tuple[Table, ...]
    rankings: tuple[Ranking, ...]
    pareto: tuple[ParetoPoint, ...]


def board_schema() -> str:
    """Return the JSON schema of a board, with the names under which it was published."""
    text = json.dumps(Board.model_json_schema())
    for name, published in _PUBLISHED_NAMES.items():
        text = text.replace(f'"{name}"', f'"{published}"')
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{published}"')
    return json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"

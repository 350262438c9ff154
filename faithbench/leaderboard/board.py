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
from faithbench.metrics.kinds import Aspect, Family

BOARD_SCHEMA: Final = 3

# Schemas are published under these names; others may have made code from it.
_PUBLISHED_NAMES: Final = {"Score": "Cell", "BoardRow": "Entrant", "ShownExample": "Shown"}

Interval = tuple[float, float]
Standing = Literal["ranked", "incomplete", "below", "control"]
"""Whether an explainer of a table has a place in it. One that is `incomplete` lacks a metric that
the ranking needs; one `below` the line is not better than random by AOPC; a `control` does not
look at the model, or is the rationale that people marked, and is never ranked."""


class Score(Facts):
    """One explainer's result on one metric.

    `letters` are its groups of ties: who shares one is not significantly different. `tie` marks
    who is not significantly worse than the best. Controls and explainers below the line have
    neither. `skill` is (mean - random) / (best - random), where the best is that of the table, or
    the value of a perfect explainer where that is known: 0 is random, 1 the best.
    """

    mean: float | None
    ci95: Interval | None
    n: Count
    skipped: Count
    letters: str
    best: bool
    tie: bool
    skill: float | None = None


class Pair(NamedTuple):
    """A paired test of two explainers: its p value, p after Holm over the table, and effect.

    The effect is a rank-biserial correlation, + if the first is better (higher, where neither is).
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


class Gap(NamedTuple):
    """Two neighbours of a column: how far apart, and the number of examples to tell them apart."""

    first: str
    second: str
    difference: float
    examples: int | None


class Power(Facts):
    """What the examples of a column can tell apart, with a chance of 80% and after Holm.

    `detectable` is the smallest such difference of two means, for the median spread of all pairs;
    `separated` is the share of pairs that differ by more. `gaps` are those of neighbours.
    """

    detectable: float
    separated: float
    gaps: tuple[Gap, ...]


class Column(Facts):
    """One metric of a table: a cell per explainer, best first, and the tests of all pairs.

    `metric` is unique in a table: one of which the records hold several versions, or that was
    measured with several encoders, has a column for each, named `aopc@2` or
    `iou_semantic@1 (encoder)`. `proxy` marks agreement with rationales that no person marked.
    Speed is measured on the explainer, not per example, so it has no tests. Stability is compared
    among explainers above the line only: one that ignores the input would be the most stable.
    """

    metric: str
    title: str
    family: Family
    higher_is_better: bool | None
    version: int
    proxy: bool
    aspect: Aspect | None
    ranked: bool
    cells: dict[str, Score]
    pairs: tuple[Pair, ...]
    power: Power | None


class BoardRow(Facts):
    """An explainer of a table: who it is, what it cost, and how the prediction falls.

    `curve` is the mean probability with 0, 10, ..., 90% of the tokens erased. `seconds` are
    measured, and comparable only within one machine; rows through the network are counted. None
    of scores that were made elsewhere: nobody here counted them. `aspects` are its ranks by the
    aspects of faithfulness, among the ranked; `place` is its rank by their mean.
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
    standing: Standing
    aspects: dict[Aspect, float]
    place: float | None

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
    `model_sha256` is of all files that make the model, or, in tables of records from before that
    was kept, of its weights alone: `model_known_by` tells which.
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
    model_sha256: str
    model_known_by: Literal["files", "weights"]
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


class RankedRow(Facts):
    """An explainer's place over tables, and what stands beside it.

    `rank` is its mean rank if every two explainers are compared on the tables that they share:
    1 plus, for each other, the share of these tables (and of their aspects) on which that one is
    ahead. `ci95` is a bootstrap interval over tables. `adjusted` is the p value of the test against
    the first over common tables, after Holm, and `worse_on` names the tables on which the first is
    significantly better by AOPC; `tied` tells who is significantly worse neither over tables nor
    on half of its own. `skill` and `plausibility` are mean skills, by AOPC and by the agreement
    with rationales that people marked; `stability` is the mean overlap with neighbours above
    chance, of the tables on which it is above the line; `cost` is the mean of forward equivalents.
    A control has the rank at which it would stand, and no tests.
    """

    label: str
    rank: float
    ci95: Interval | None
    tables: tuple[str, ...]
    tied: bool
    adjusted: float | None
    worse_on: tuple[str, ...]
    skill: float | None
    stability: float | None
    plausibility: float | None
    cost: float | None


class Ranking(Facts):
    """Explainers ranked by faithfulness over tables, best first; controls and those below apart.

    `pairs` tests every two of the ranked by signed ranks over the tables that they share.
    `least_p` is the smallest p value after Holm that so many tables and pairs allow.
    """

    tables: tuple[str, ...]
    rows: tuple[RankedRow, ...]
    below: tuple[RankedRow, ...]
    controls: tuple[RankedRow, ...]
    pairs: tuple[Pair, ...]
    least_p: float | None


class OperatorPair(Facts):
    """Two tables of the same examples, erased in two ways, and how their orders agree.

    `kendall` is tau-b between the two orders by faithfulness of the explainers ranked in both,
    `kendall_best` of the ten best of the first. `leaders` are the first of either table.
    """

    first: str
    second: str
    operators: tuple[str, str]
    shared: Count
    kendall: float | None
    kendall_best: float | None
    kendall_aopc: float | None
    leaders: tuple[tuple[str, ...], tuple[str, ...]]


class ParetoPoint(Facts):
    """One explainer's faithfulness rank against its mean cost in forward equivalents."""

    label: str
    faithfulness_rank: float
    forward_equivalents: float
    front: bool


class Board(Facts):
    """The whole leaderboard; `digest` is that of the records it was made from."""

    board_schema: Literal[3]
    digest: str
    records: Count
    tables: tuple[Table, ...]
    ranking: Ranking | None
    operators: tuple[OperatorPair, ...]
    pareto: tuple[ParetoPoint, ...]


def board_schema() -> str:
    """Return the JSON schema of a board, with the names under which it was published."""
    text = json.dumps(Board.model_json_schema())
    for name, published in _PUBLISHED_NAMES.items():
        text = text.replace(f'"{name}"', f'"{published}"')
        text = text.replace(f'"#/$defs/{name}"', f'"#/$defs/{published}"')
    return json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"

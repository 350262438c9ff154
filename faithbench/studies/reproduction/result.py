"""What a reproduction came to, as a file: cells, verdicts and the digests of their records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json, reason, replace_file
from faithbench.core.rounding import significant
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.studies.reproduction.recipe import CellSpec, Item
from faithbench.studies.reproduction.request import ModelSource
from faithbench.studies.reproduction.trials import Side
from faithbench.studies.reproduction.values import Measured, Value
from faithbench.studies.reproduction.verdicts import Judged, Verdict

SCHEMA: Final = 1
FILE = "reproduction.json"
DIGITS = 6


class RecordFacts(Facts):
    """A record behind a cell, and the digest of its values."""

    path: str
    sha256: str


class CellResult(Facts):
    """One cell: the paper's number and ours; `missing` says why there is none of ours."""

    row: str
    column: str
    printed: float | None = None
    spread: float | None = None
    ours: float | None = None
    interval: tuple[float, float] | None = None
    n: Count = 0
    seeds: Count = 0
    records: tuple[RecordFacts, ...] = ()
    missing: str = ""


class TrialResult(Facts):
    """One statement about cells, tested."""

    what: str
    side: Side
    difference: float | None = None
    interval: tuple[float, float] | None = None
    theirs: float | None = None
    p: float | None = None
    n: Count = 0
    why: str = ""


class ClaimResult(Facts):
    """A claim of the paper, or a question of our own, with its verdict and its trials."""

    says: str
    where: str
    test: str
    verdict: Verdict
    count: str
    why: str = ""
    note: str = ""
    own: bool = False
    trials: tuple[TrialResult, ...] = ()


class RankResult(Facts):
    """How alike the paper and we order methods: Kendall's tau over `n` methods of a line."""

    line: str
    tau: float | None
    p: float | None
    n: Count


class MapRow(Facts):
    """One line of a text side by side: weights from -1 to 1, one per word."""

    label: str
    weights: tuple[float, ...]


class MapText(Facts):
    """A text whose words are shown under several explainers or models."""

    id: str
    words: tuple[str, ...]
    marked: tuple[bool, ...] = ()
    predicted: str = ""
    rows: tuple[MapRow, ...]


class ItemResult(Facts):
    """A table or figure, reproduced; `seconds` are CPU seconds of all work behind it.

    `options` are those of the command that override the recipe.
    """

    id: str
    title: str
    kind: Literal["table", "figure", "maps"]
    cells: tuple[CellResult, ...] = ()
    claims: tuple[ClaimResult, ...] = ()
    ranks: tuple[RankResult, ...] = ()
    maps: tuple[MapText, ...] = ()
    departs: tuple[str, ...] = ()
    seconds: float = 0.0
    options: str = ""


class Reproduction(Facts):
    """All that is known of a paper, by the models that were explained: ours, or those of the hub.

    The two never meet in one comparison. `quick` marks one that proves nothing.
    """

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    paper: str
    recipe_sha256: str
    quick: bool = False
    cpu: str = ""
    sources: dict[ModelSource, dict[str, ItemResult]] = Field(default_factory=dict)

    @property
    def claims(self) -> list[ClaimResult]:
        """All claims, of all sources and items."""
        return [
            claim
            for items in self.sources.values()
            for item in items.values()
            for claim in item.claims
        ]


def cell_result(cell: CellSpec, value: Value) -> CellResult:
    """Return a cell as it is kept, rounded."""
    theirs = CellResult(row=cell.row, column=cell.column, printed=cell.printed, spread=cell.spread)
    if not isinstance(value, Measured):
        return theirs.model_copy(update={"missing": value.why})
    interval = value.interval
    return CellResult(
        row=cell.row,
        column=cell.column,
        printed=cell.printed,
        spread=cell.spread,
        ours=_rounded(value.mean),
        interval=None if interval is None else (_rounded(interval[0]), _rounded(interval[1])),
        n=value.n,
        seeds=len(value.by_seed),
        records=tuple(RecordFacts(path=r.path, sha256=r.sha256) for r in value.records),
    )


def claim_result(judged: Judged) -> ClaimResult:
    """Return a claim as it is kept."""
    claim = judged.claim
    trials = tuple(
        TrialResult(
            what=trial.what,
            side=trial.side,
            difference=None if trial.difference is None else _rounded(trial.difference),
            interval=None
            if trial.interval is None
            else (_rounded(trial.interval[0]), _rounded(trial.interval[1])),
            theirs=None if trial.theirs is None else _rounded(trial.theirs),
            p=None if trial.p is None else significant(trial.p, 3),
            n=trial.n,
            why=trial.why,
        )
        for trial in judged.trials
    )
    return ClaimResult(
        says=claim.says,
        where=claim.where,
        test=claim.test,
        verdict=judged.verdict,
        count=judged.count,
        why=judged.why,
        note=claim.note,
        own=claim.own,
        trials=trials,
    )


def _rounded(value: float) -> float:
    return significant(value, DIGITS)


def rank_results(item: Item, cells: tuple[CellResult, ...]) -> tuple[RankResult, ...]:
    """Compare the order of methods with the paper's, in every column (or row) of a table."""
    if not item.ranked:
        return ()
    from scipy.stats import kendalltau

    lines = item.columns if item.ranked == "rows" else item.rows
    results = []
    for line in lines:
        both = [
            (cell.printed, cell.ours)
            for cell in cells
            if (cell.column if item.ranked == "rows" else cell.row) == line.name
            and cell.printed is not None
            and cell.ours is not None
        ]
        if len(both) < 3:
            continue
        found = kendalltau(*zip(*both, strict=True))
        known = found.statistic == found.statistic  # not NaN, as where all are equal
        results.append(
            RankResult(
                line=line.name,
                tau=_rounded(float(found.statistic)) if known else None,
                p=significant(float(found.pvalue), 3) if known else None,
                n=len(both),
            )
        )
    return tuple(results)


def write_reproduction(found: Reproduction, folder: Path) -> None:
    """Write the file; equal reproductions give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    data = found.model_dump(by_alias=True, exclude_defaults=False)
    text = json.dumps(data, sort_keys=True, indent=1, allow_nan=False, ensure_ascii=False)
    replace_file(folder / FILE, f"{text}\n".encode())


def read_reproduction(folder: Path) -> Reproduction | None:
    """Read what an earlier call found; None if there is nothing."""
    path = folder / FILE
    try:
        data = parse_json(path.read_bytes().decode())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FaithbenchError(f"cannot read {path}: {reason(error)}; remove it") from error
    try:
        return Reproduction.model_validate(data)
    except ValidationError as error:
        raise FaithbenchError(f"{path}: {describe_error(error)}; remove it") from error

"""Rows: the results of one example under one explainer, and their line in a file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final

import msgspec

from faithbench.core.errors import FaithbenchError
from faithbench.core.rounding import decimals, significant
from faithbench.core.types import Attribution, Floats, Target

ROWS_SCHEMA: Final = 1

_Count = Annotated[int, msgspec.Meta(ge=0)]


class ResultRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The results of one example; `tokens` and `scores` are those of its evidence.

    `target` is the predicted class, or the positions of the predicted answer's first and last
    token. `right` is true if it is the label, or an accepted answer; `right_without_rationale`
    if the label is still predicted with the rationale erased.
    Under several seeds, `scores` are those of the first and `more_scores` those of the others;
    `values` are then means over the seeds, and `by_seed` has each metric's value for each.
    `curve` is the probability without the top 10, 20, ..., 90%, the mean over the seeds.
    `forwards` and `backwards` are None for precomputed scores. `elsewhere` is what rows through
    another network cost, in forwards of the model. `answer` has the words of a prediction that is
    no class.
    """

    # A msgspec struct, not a pydantic model like a record: as closed and as strict, but read in
    # half the time, and a leaderboard reads a hundred thousand rows.

    id: str
    target: int | tuple[int, int]
    label: int
    right: bool
    probability: float
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    more_scores: tuple[tuple[float, ...], ...] = ()
    values: dict[str, float | None]
    by_seed: dict[str, tuple[float | None, ...]] = {}  # msgspec gives each row its own
    curve: tuple[float, ...] = ()
    right_without_rationale: bool | None = None
    rows_asked: _Count
    distinct_rows: _Count
    forwards: _Count | None
    backwards: _Count | None
    gap: float | None = None
    elsewhere: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    answer: str = ""

    def __post_init__(self) -> None:
        """Refuse a row whose tokens do not have one score each."""
        for scores in (self.scores, *self.more_scores):
            if len(self.tokens) != len(scores):
                raise ValueError(f"{len(scores)} scores for {len(self.tokens)} tokens")


class Time(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The seconds one example took, in a file of its own: rows of equal runs are equal bytes."""

    id: str
    seconds: float


def make_row(
    *,
    id: str,  # noqa: A002  # the name of the field it fills
    target: Target,
    label: int,
    right: bool,
    probability: float,
    tokens: Sequence[str],
    scores: Sequence[Sequence[float] | Floats],
    values: Sequence[Mapping[str, float | None]],
    rows_asked: int,
    distinct_rows: int,
    forwards: int | None,
    backwards: int | None,
    gap: float | None = None,
    elsewhere: float = 0.0,
    right_without_rationale: bool | None = None,
    curves: Sequence[Sequence[float]] = (),
    answer: str = "",
) -> ResultRow:
    """Build a row from plain numbers: all of them are checked to be finite, and rounded.

    `scores`, `values` and `curves` have an entry per seed. Scores and gap keep 7 significant
    digits, probability, values and `elsewhere` 9 decimals, so that last-bit noise of a device
    does not reach the file. Where there are attributions, `row_of` is the shorter way.
    """
    for seed_scores in scores:
        if len(tokens) != len(seed_scores):
            raise FaithbenchError(
                f"example {id!r}: {len(seed_scores)} scores for {len(tokens)} erasable tokens; "
                "an explainer returns one score per token"
            )
        _check_finite(id, "a score", seed_scores)
    _check_finite(id, "probability", [probability])
    _check_finite(id, "elsewhere", [elsewhere])
    first, *others = (tuple(significant(score, 7) for score in seed) for seed in scores)
    row = ResultRow(
        id=id,
        target=target,
        label=int(label),
        right=right,
        probability=decimals(probability),
        tokens=tuple(tokens),
        scores=first,
        more_scores=tuple(others),
        values={},
        curve=tuple(decimals(math.fsum(at) / len(at)) for at in zip(*curves, strict=True)),
        right_without_rationale=right_without_rationale,
        rows_asked=rows_asked,
        distinct_rows=distinct_rows,
        forwards=forwards,
        backwards=backwards,
        gap=None if gap is None else significant(gap, 7),
        elsewhere=decimals(elsewhere),
        answer=answer,
    )
    return add_values(row, {name: [seed[name] for seed in values] for name in values[0]})


def row_of(
    attributions: Sequence[Attribution],
    *,
    tokens: Sequence[str],
    right: bool,
    probability: float,
    values: Mapping[str, Sequence[float | None]],
    rows_asked: int,
    distinct_rows: int,
    right_without_rationale: bool | None = None,
    curves: Sequence[Sequence[float]] = (),
    answer: str = "",
) -> ResultRow:
    """Build the whole row of one example from its attributions, one per seed.

    `values` maps each metric, of whatever kind, to its value under every seed, or to a single
    one that holds for all; `curves` has an entry per seed. Cost and gap are those of the
    first seed.
    """
    first = attributions[0]
    example = first.encoding.example
    row = make_row(
        id=example.id,
        target=first.target,
        label=example.label,
        right=right,
        probability=probability,
        tokens=tokens,
        scores=[attribution.scores for attribution in attributions],
        values=[{}],
        rows_asked=rows_asked,
        distinct_rows=distinct_rows,
        forwards=first.forwards,
        backwards=first.backwards,
        gap=first.gap,
        elsewhere=first.elsewhere or 0.0,
        right_without_rationale=right_without_rationale,
        curves=curves,
        answer=answer,
    )
    return add_values(row, values)


def add_values(row: ResultRow, values: Mapping[str, Sequence[float | None]]) -> ResultRow:
    """Return a row with further metrics: each one's value under every seed, or a single value."""
    rounded = {
        name: tuple(None if value is None else decimals(value) for value in by_seed)
        for name, by_seed in values.items()
    }
    for name, by_seed in rounded.items():
        _check_finite(row.id, f"value {name!r}", [v for v in by_seed if v is not None])
    return msgspec.structs.replace(
        row,
        values=row.values | {name: _mean_over_seeds(seeds) for name, seeds in rounded.items()},
        by_seed=row.by_seed | {name: seeds for name, seeds in rounded.items() if len(seeds) > 1},
    )


def _mean_over_seeds(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds that have a value, None if none has."""
    present = [value for value in values if value is not None]
    return decimals(math.fsum(present) / len(present)) if present else None


def _check_finite(example: str, name: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not math.isfinite(number):
            raise FaithbenchError(
                f"example {example!r}: {name} is {float(number)}; "
                "numbers should be finite, and a missing value None"
            )


def to_header(key: str) -> bytes:
    """Return the first line of a rows file: its schema, and the key of the run."""
    return _canonical({"faithbench_rows": ROWS_SCHEMA, "key": key})


def to_line(line: ResultRow | Time) -> bytes:
    """Return the line of a row or a time: equal ones give equal bytes."""
    data = msgspec.structs.asdict(line)
    # Few explainers run another network, and most predictions are classes: rows of the others stay
    # as they were before these fields were there.
    for name in ("elsewhere", "answer"):
        if not data.get(name, True):
            del data[name]
    try:
        return _canonical(data)
    except UnicodeEncodeError as error:
        raise FaithbenchError(
            f"example {line.id!r}: its id or a token is not valid Unicode; fix the text"
        ) from error


def _canonical(data: object) -> bytes:
    # Keys sorted and nothing escaped, so that a line depends on its values alone.
    compact = (",", ":")
    text = json.dumps(data, sort_keys=True, separators=compact, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()

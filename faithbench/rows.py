"""The rows of a run: what is kept of one example, and the lines of the file that holds them."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

from pydantic import Field, ValidationError, model_validator

from faithbench.errors import FaithbenchError
from faithbench.files import parse_json
from faithbench.records import Count, Facts, explain
from faithbench.rounding import decimals, significant
from faithbench.types import Floats, Target

ROWS_SCHEMA: Final = 1
LARGEST: Final = 256 << 20
"""So many bytes a packed rows file may hold: a small file can unpack to any size."""
START = b'{"faithbench_rows":'


class Row(Facts):
    """What was found for one example; `tokens` and `scores` are those of its evidence.

    `target` is the predicted class, or the positions of the predicted answer's first and last
    token; `right` says whether it is the label, or an accepted answer, and
    `right_without_rationale` whether the label is still found when the rationale is erased.
    Under several seeds, `scores` are those of the first and `more_scores` those of the others;
    `values` are then means over the seeds, and `by_seed` has each metric's value for each.
    `curve` is the probability without the top 10, 20, ..., 90%, the mean over the seeds.
    `forwards` and `backwards` are None for scores that were made elsewhere.
    """

    id: str
    target: int | tuple[int, int]
    label: int
    right: bool
    probability: float
    tokens: tuple[str, ...]
    scores: tuple[float, ...]
    more_scores: tuple[tuple[float, ...], ...] = ()
    values: dict[str, float | None]
    by_seed: dict[str, tuple[float | None, ...]] = Field(default={})
    curve: tuple[float, ...] = ()
    right_without_rationale: bool | None = None
    rows_asked: Count
    distinct_rows: Count
    forwards: Count | None
    backwards: Count | None
    gap: float | None = None

    @model_validator(mode="after")
    def _one_score_per_token(self) -> Self:
        for scores in (self.scores, *self.more_scores):
            if len(self.tokens) != len(scores):
                raise ValueError(f"{len(scores)} scores for {len(self.tokens)} tokens")
        return self


class Time(Facts):
    """How long one example took: kept apart, so that rows of equal runs are equal bytes."""

    id: str
    seconds: float


Line = TypeVar("Line", Row, Time)


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
    right_without_rationale: bool | None = None,
    curves: Sequence[Sequence[float]] = (),
) -> Row:
    """Build a row, scores to 7 significant digits, probability and values to 9 decimals.

    `scores`, `values` and `curves` have an entry per seed. All is rounded, so that last-bit
    noise of a device does not reach the file.
    """
    for own in scores:
        if len(tokens) != len(own):
            raise FaithbenchError(
                f"example {id!r}: {len(own)} scores for {len(tokens)} erasable tokens; "
                "an explainer returns one score per token"
            )
        _check_finite(id, "a score", own)
    _check_finite(id, "probability", [probability])
    first, *others = (tuple(significant(score, 7) for score in own) for own in scores)
    row = Row(
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
    )
    return add_values(row, {name: [own[name] for own in values] for name in values[0]})


def add_values(row: Row, values: Mapping[str, Sequence[float | None]]) -> Row:
    """Return a row with more metrics: each one's value under every seed, or a single value."""
    rounded = {
        name: tuple(None if value is None else decimals(value) for value in own)
        for name, own in values.items()
    }
    for name, own in rounded.items():
        _check_finite(row.id, f"value {name!r}", [value for value in own if value is not None])
    return row.model_copy(
        update={
            "values": row.values | {name: _mean(own) for name, own in rounded.items()},
            "by_seed": row.by_seed | {n: own for n, own in rounded.items() if len(own) > 1},
        }
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds that have a value."""
    present = [value for value in values if value is not None]
    return decimals(math.fsum(present) / len(present)) if present else None


def _check_finite(example: str, name: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not math.isfinite(number):
            raise FaithbenchError(
                f"example {example!r}: {name} is {float(number)}; "
                "numbers should be finite, and a missing value None"
            )


def read_rows(path: Path, sha256: str | None = None) -> tuple[Row, ...]:
    """Read a finished rows file, checking it against the record's `sha256` if given."""
    return read_keyed_rows(path, sha256)[1]


def read_keyed_rows(path: Path, sha256: str | None = None) -> tuple[str, tuple[Row, ...]]:
    """Read a finished rows file and the key of the run that made it; `.gz` is unpacked."""
    data = read_bytes(path, sha256)
    key, rows, good = parse_rows(path, data)
    if key is None or good < len(data):
        raise FaithbenchError(
            f"rows file {path} ends in half a line; run the cell again to mend it"
        )
    return key, tuple(rows)


def read_bytes(path: Path, sha256: str | None = None) -> bytes:
    """Return what a rows file holds, unpacked if its name ends in `.gz`.

    The digest is that of the file as it lies there, packed or not.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FaithbenchError(
            f"cannot read rows file {path}: {error.strerror}; it belongs beside its record"
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if sha256 not in (None, found):
        raise FaithbenchError(
            f"rows file {path} has sha256 {found}, its record says {sha256}; "
            "restore the file or run the cell again"
        )
    return _unpacked(path, data) if path.suffix == ".gz" else data


def _unpacked(path: Path, data: bytes) -> bytes:
    """Unpack a gzip file, but no more than a rows file can sensibly hold."""
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = file.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FaithbenchError(
            f"rows file {path} is not a whole gzip file: {error}; restore it or run the cell again"
        ) from error
    if len(found) > LARGEST:
        raise FaithbenchError(
            f"rows file {path} holds more than {LARGEST >> 20} MB unpacked, which is refused; "
            "split the examples over several runs"
        )
    return found


def times_path(path: Path) -> Path:
    """Return where the times of a rows file lie: `<stem>.times.jsonl` beside it."""
    return path.with_name(f"{path.stem}.times.jsonl")


def parse_rows(path: Path, data: bytes) -> tuple[str | None, list[Row], int]:
    """Return key, rows and length of the good part; no key if even the header is torn."""
    end = data.find(b"\n") + 1
    if not end and START.startswith(data[: len(START)]):
        return None, [], 0
    try:
        head = parse_json(data[:end].decode())
    except ValueError:
        head = None
    fields = head if isinstance(head, dict) else {}
    version, key = fields.get("faithbench_rows"), fields.get("key")
    if type(version) is int and version > ROWS_SCHEMA:
        raise FaithbenchError(
            f"rows file {path} was made by a newer faithbench "
            f"(rows {version}, this one reads up to {ROWS_SCHEMA}): upgrade faithbench"
        )
    if version != ROWS_SCHEMA or not isinstance(key, str):
        raise FaithbenchError(
            f"{path} is not a rows file: its first line is no header; "
            "use --fresh to replace it or choose another folder with --results"
        )
    rows, good = parse_lines(path, data[end:], Row, 2)
    seen: set[str] = set()
    for number, row in enumerate(rows, 2):
        if row.id in seen:
            raise _damaged(path, number, f"example {row.id!r} appears twice")
        seen.add(row.id)
    return key, rows, end + good


def parse_lines(path: Path, data: bytes, kind: type[Line], first: int) -> tuple[list[Line], int]:
    """Return the lines, numbered from `first`, and the length of the part without a torn tail."""
    # Only at newline bytes: str.splitlines would also cut at characters inside tokens.
    *lines, tail = data.split(b"\n")
    found: list[Line] = []
    good = 0
    for number, line in enumerate(lines, first):
        try:
            found.append(kind.model_validate_json(line, strict=True))
        except ValidationError as error:
            last = number == first + len(lines) - 1 and not tail
            if last and error.errors()[0]["type"] == "json_invalid":
                break
            raise _damaged(path, number, explain(error)) from error
        good += len(line) + 1
    return found, good


def _damaged(path: Path, number: int, reason: str) -> FaithbenchError:
    return FaithbenchError(
        f"rows file {path}, line {number} is damaged: {reason}; "
        "restore the file or use --fresh to start anew"
    )


def to_header(key: str) -> bytes:
    """Return the first line of a rows file: its schema, and the key of the run."""
    return _canonical({"faithbench_rows": ROWS_SCHEMA, "key": key})


def to_line(line: Row | Time) -> bytes:
    """Return the one line that stands for a row or a time."""
    try:
        return _canonical(line.model_dump())
    except UnicodeEncodeError as error:
        raise FaithbenchError(
            f"example {line.id!r}: its id or a token is not valid Unicode; mend the text"
        ) from error


def _canonical(data: object) -> bytes:
    compact = (",", ":")
    text = json.dumps(data, sort_keys=True, separators=compact, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()

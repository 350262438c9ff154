"""From rows of data to examples; an error names the row's place and the faulty field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from hashlib import blake2b
from typing import TypeGuard

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import plain
from faithbench.core.types import Answer, Example, Span
from faithbench.data.kinds import KINDS
from faithbench.data.sources import PlacedRow
from faithbench.data.tasks import Task

FIELDS = frozenset({"id", "text", "text_a", "text_b", "label", "rationale", "answers", "choices"})
"""The fields of a row that some task reads."""


def parse_examples(
    task: Task, rows: Iterable[PlacedRow], unread: Counter[str] | None = None
) -> Iterator[Example]:
    """Yield rows as examples; a faulty row is an error that names its place and field.

    Fields that the task does not read are counted in `unread`, by the rows that have them.

    An id may be used once. Of the rows gone by only eight bytes of the id's digest are kept;
    probability of a collision for a million ids: < 1e-7.
    """
    seen: set[int] = set()
    read = _fields_read(task)
    for place, row in rows:
        if not isinstance(row, dict):
            raise FaithbenchError(f"{place}: expected a JSON object, found {row!r:.60}")
        strays = sorted(set(row) - read)
        try:
            _check_spelling(task, row, strays)
            example = _example(task, row)
            key = int.from_bytes(blake2b(example.id.encode(), digest_size=8).digest(), "big")
            if key in seen:
                raise _RowError("id", "an id used once", example.id)
        except _RowError as fault:
            hint = (
                f" (the row has {plain(', '.join(strays))}, not read)"
                if fault.missing and strays
                else ""
            )
            raise FaithbenchError(f"{place}: {fault}{hint}; fix the row") from None
        seen.add(key)
        if unread is not None:
            unread.update(strays)
        yield example


class _RowError(Exception):
    """A field of a row with a wrong value; the caller adds the row's place."""

    def __init__(self, field: str, expected: str, found: object) -> None:
        super().__init__(f"field {field!r}: expected {expected}, found {found!r:.60}")
        self.missing = found is None


def _fields_read(task: Task) -> set[str]:
    """Return the fields that the task reads, those by which its files are cut included."""
    kind = KINDS[task.kind]
    needed = {"answers": kind.has_answers, "choices": kind.has_choices}
    unused = {field for field, is_needed in needed.items() if not is_needed}
    cut = {derived.by for derived in task.folder.derive.values()} if task.folder else set()
    return {*(FIELDS - unused), *cut}


def _check_spelling(task: Task, row: dict[str, object], strays: list[str]) -> None:
    """Refuse a misspelt field that a row may lack: all others are missed when they are read."""
    if not strays:
        return
    used = {"rationale": task.rationale != "none", "answers": KINDS[task.kind].has_answers}
    for field in [name for name, is_used in used.items() if is_used and name not in row]:
        if close := get_close_matches(field, strays, n=1, cutoff=0.8):
            raise _RowError(field, f"that name, not {close[0]!r}", row[close[0]])


def _example(task: Task, row: dict[str, object]) -> Example:
    if "text" in row and "text_a" in row:
        raise _RowError("text_a", "either text or text_a", "both")
    paired = KINDS[task.kind].texts == 2
    if not paired and row.get("text_b") is not None:
        raise _RowError("text_b", f"no second text in a {task.kind} task", row["text_b"])
    text = _string(row, "text_a" if "text_a" in row else "text")
    choices = _choices(task, row.get("choices")) if KINDS[task.kind].has_choices else ()
    return Example(
        id=_string(row, "id"),
        text=text,
        label=_label(task.labels[: len(choices) or None], row.get("label")),
        text_b=_string(row, "text_b") if paired else None,
        rationale=_rationale(text, row.get("rationale")),
        answers=_answers(text, row.get("answers")) if KINDS[task.kind].has_answers else (),
        choices=choices,
    )


def _string(row: dict[str, object], field: str) -> str:
    value = row.get(field)
    if not isinstance(value, str) or not value.strip():
        raise _RowError(field, "a text that is not blank", value)
    # JSON can spell half a surrogate pair, which no tokeniser or file can take.
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise _RowError(field, "valid Unicode", value)
    return value


def _label(labels: tuple[str, ...], value: object) -> int:
    if isinstance(value, str) and value in labels:
        return labels.index(value)
    if _is_int(value) and value in range(len(labels)):
        return value
    expected = f"0 to {len(labels) - 1} or one of {', '.join(labels)}"
    raise _RowError("label", expected, value)


def _rationale(text: str, value: object) -> tuple[Span, ...] | None:
    if value is None:
        return None
    spans: list[Span] = []
    for pair in _list("rationale", value):
        match pair:
            case [start, end] if _is_int(start) and _is_int(end) and 0 <= start < end <= len(text):
                if spans and start < spans[-1][1]:
                    raise _RowError("rationale", "spans that are sorted and do not overlap", value)
                spans.append((start, end))
            case _:
                raise _RowError("rationale", f"spans [start, end) within 0 to {len(text)}", pair)
    # A rationale that marks nothing leaves nothing to agree with: the same as none.
    return tuple(spans) or None


def _answers(text: str, value: object) -> tuple[Answer, ...]:
    answers: list[Answer] = []
    for entry in _list("answers", [] if value is None else value):
        match entry:
            case {"start": start, "text": str(words)} if (
                _is_int(start) and start >= 0 and words and text.startswith(words, start)
            ):
                answers.append(Answer(start, words))
            case _:
                raise _RowError("answers", "a start and the words found there in the text", entry)
    return tuple(answers)


def _choices(task: Task, value: object) -> tuple[str, ...]:
    """Return the choices of a row: two or more, of which the task's labels are the names."""
    if not isinstance(value, list) or not 2 <= len(value) <= len(task.labels):
        raise _RowError("choices", f"a list of 2 to {len(task.labels)} texts", value)
    return tuple(_string({"choices": choice}, "choices") for choice in value)


def _list(field: str, value: object) -> list[object]:
    if not isinstance(value, list):
        raise _RowError(field, "a list or null", value)
    return value


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)

"""Rows under names of their own, read as rows under ours: columns, labels and layouts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from faithbench.core.errors import FaithbenchError
from faithbench.data.sources import SplitRequest
from faithbench.data.task_schema import MappedTable
from faithbench.data.tasks import Task

Row = dict[str, Any]
Mapped = TypeVar("Mapped", bound=MappedTable)

# What a file of JSON lines may leave out of a row that has none.
_OPTIONAL = ("rationale", "answers")


def our_rows(
    wanted: SplitRequest[Mapped], place: str, number: int, theirs: Row, names: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield what a row of the source says under our names; `names` are those of its labels."""
    task, table = wanted.task, wanted.table
    row: Row = {ours: _value(theirs, column) for ours, column in table.columns_of(theirs).items()}
    # Ids of the source need not be unique across its splits; a file's own `id` is kept.
    if "id" in table.columns or "id" not in row:
        row["id"] = f"{task.name}-{wanted.split}-{row.get('id', number)}"
    if table.text_from:
        row["text"] = _tail(wanted, place, row, _value(theirs, table.text_from))
    texts = (row.get("text"), row.get("text_b"))
    if any(isinstance(text, str) and not text.strip() for text in texts):
        return  # some hub sets hold a few empty texts, of which nothing can be said
    try:
        yield from _LAYOUTS[table.layout](task, table, row, names)
    except (KeyError, TypeError, ValueError) as error:
        raise FaithbenchError(
            f"{place}: not of the layout {table.layout!r} ({error}); "
            f"fix {table.key}.columns or {table.key}.layout of task {task.name}"
        ) from error


def check_columns(wanted: SplitRequest[Mapped], place: str, names: Iterable[str]) -> None:
    """Refuse data, or one row of them, that lack a column the task file names."""
    table, there = wanted.table, list(names)
    optional = _OPTIONAL if table.key == "folder" else ()
    needed = {
        column.partition(".")[0] for ours, column in table.columns.items() if ours not in optional
    }
    start = table.text_from.partition(".")[0]
    needed |= {start} - {""}
    if absent := sorted(needed - set(there)):
        key = "text_from" if absent[0] == start else "columns"
        raise FaithbenchError(
            f"{place} has no column {absent[0]!r}, it has "
            f"{', '.join(there)}; fix {table.key}.{key} of task {wanted.task.name}"
        )


def _tail(wanted: SplitRequest[Mapped], place: str, row: Row, start: Any) -> str:
    """Return a row's text from an offset on; marks in the text would have to move with it."""
    text = row.get("text")
    # By its type itself: true would pass for 1.
    if not isinstance(text, str) or type(start) is not int or not 0 <= start <= len(text):
        raise FaithbenchError(
            f"{place}: {wanted.table.text_from!r} is {start!r}, which is no place in the text; "
            f"fix the row, or {wanted.table.key}.text_from of task {wanted.task.name}"
        )
    if row.get("rationale") or row.get("answers"):
        raise FaithbenchError(
            f"{place}: a text that is cut by text_from cannot have a rationale or answers, whose "
            f"places are those of the whole text; leave them out of task {wanted.task.name}"
        )
    return text[start:]


def _value(row: Row, path: str) -> Any:
    value: Any = row
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _plain(task: Task, table: MappedTable, row: Row, names: Sequence[str]) -> Iterator[Row]:
    label: Any = row.get("label")
    if table.values:
        if label not in table.values:
            return
        label = table.values.index(label)
    elif set(names) == set(task.labels) and label in range(len(names)):
        label = task.labels.index(names[label])
    yield row | {"label": label}


def _squad(task: Task, table: MappedTable, row: Row, names: Sequence[str]) -> Iterator[Row]:
    """Read answers kept as two lists; without one, the question has no answer."""
    given = row["answers"] if isinstance(row["answers"], dict) else {}
    texts, starts = given.get("text") or [], given.get("answer_start") or []
    pairs = zip(starts, texts, strict=True)
    answers = [{"start": start, "text": text} for start, text in pairs]
    yield row | {"answers": answers, "label": "answerable" if answers else "no_answer"}


def _cloze(task: Task, table: MappedTable, row: Row, names: Sequence[str]) -> Iterator[Row]:
    """Make one row of each sentence that holds a candidate: is the filler in it, and where?

    The sentences are a list, or the lines of one text.
    """
    candidates = [_word(option) for option in row["options"]]
    filler = _word(row["answers"])
    text = row["text"]
    for index, sentence in enumerate(text.split("\n") if isinstance(text, str) else text):
        if not any(pattern.search(sentence) for pattern in candidates):
            continue
        spans = [list(match.span()) for match in filler.finditer(sentence)]
        yield {
            "id": f"{row['id']}-{index}",
            "text": sentence,
            "text_b": row["text_b"],
            "label": int(bool(spans)),
            "rationale": spans or None,
        }


def _word(words: str) -> re.Pattern[str]:
    # Cloze sets are tokenised: what stands between spaces is one word, hyphens included.
    return re.compile(rf"(?<!\S){re.escape(words)}(?!\S)")


def _typed(task: Task, table: MappedTable, row: Row, names: Sequence[str]) -> Iterator[Row]:
    """Read whether one of the wanted types is there, and where spans of those types are."""
    types, marks = row["label"], row.get("rationale") or []
    spans: list[list[int]] = []
    for start, end in sorted([start, end] for start, end, kind in marks if kind in table.values):
        # Several events may share a trigger, or a part of one: examples want spans apart.
        if spans and start < spans[-1][1]:
            spans[-1] = [spans[-1][0], max(end, spans[-1][1])]
        else:
            spans.append([start, end])
    present = any(kind in table.values for kind in types)
    yield row | {"label": int(present), "rationale": spans or None}


_LAYOUTS: dict[str, Callable[[Task, MappedTable, Row, Sequence[str]], Iterator[Row]]] = {
    "plain": _plain,
    "squad": _squad,
    "cloze": _cloze,
    "typed": _typed,
}

"""From a row of a hub dataset to rows of ours; which form is read is said in the task file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from faithbench.errors import FaithbenchError
from faithbench.task_parts import HubSource
from faithbench.tasks import Task

Row = dict[str, Any]


def our_rows(task: Task, split: str, number: int, found: Row, names: list[str]) -> Iterator[Row]:
    """Yield what a row of the hub says under our names; `names` are those of its labels."""
    source = task.hub
    assert source is not None  # the caller reads the hub
    row: Row = {ours: _value(found, theirs) for ours, theirs in source.columns.items()}
    # Ids need not be unique across the hub's splits.
    row["id"] = f"{task.name}-{split}-{row.get('id', number)}"
    texts = (row["text"], row.get("text_b", "-"))
    if any(isinstance(text, str) and not text.strip() for text in texts):
        return  # some hub sets hold a few empty texts, of which nothing can be said
    try:
        yield from _FORMS[source.form](task, source, row, names)
    except (TypeError, ValueError) as error:
        raise FaithbenchError(
            f"{source.dataset}, row {number}: not of the form {source.form!r} ({error}); "
            f"mend hub.columns or hub.form of task {task.name}"
        ) from error


def check_columns(task: Task, names: list[str]) -> None:
    """Refuse a dataset that lacks a column the task file names."""
    source = task.hub
    assert source is not None  # the caller reads the hub
    wanted = {column.partition(".")[0] for column in source.columns.values()}
    if absent := sorted(wanted - set(names)):
        raise FaithbenchError(
            f"{source.dataset} has no column {absent[0]!r}, it has "
            f"{', '.join(names)}; mend hub.columns of task {task.name}"
        )


def _value(row: Row, path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _plain(task: Task, source: HubSource, row: Row, names: list[str]) -> Iterator[Row]:
    label = row["label"]
    if source.values:
        if label not in source.values:
            return
        label = source.values.index(label)
    elif set(names) == set(task.labels) and label in range(len(names)):
        label = task.labels.index(names[label])
    yield row | {"label": label}


def _squad(task: Task, source: HubSource, row: Row, names: list[str]) -> Iterator[Row]:
    """Read answers kept as two lists; without one, the question has no answer."""
    given = row["answers"] if isinstance(row["answers"], dict) else {}
    texts, starts = given.get("text") or [], given.get("answer_start") or []
    pairs = zip(starts, texts, strict=True)
    answers = [{"start": start, "text": text} for start, text in pairs]
    yield row | {"answers": answers, "label": "answerable" if answers else "no_answer"}


def _cloze(task: Task, source: HubSource, row: Row, names: list[str]) -> Iterator[Row]:
    """Make one row of each sentence that holds a candidate: is the filler in it, and where?"""
    candidates = [_word(option) for option in row["options"]]
    filler = _word(row["answers"])
    for place, sentence in enumerate(row["text"]):
        if not any(pattern.search(sentence) for pattern in candidates):
            continue
        spans = [list(match.span()) for match in filler.finditer(sentence)]
        yield {
            "id": f"{row['id']}-{place}",
            "text": sentence,
            "text_b": row["text_b"],
            "label": int(bool(spans)),
            "rationale": spans or None,
        }


def _word(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")


_FORMS: dict[str, Callable[[Task, HubSource, Row, list[str]], Iterator[Row]]] = {
    "plain": _plain,
    "squad": _squad,
    "cloze": _cloze,
}

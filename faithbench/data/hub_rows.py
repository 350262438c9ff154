"""The one door to the hub's datasets: is a copy here, and its rows under our names."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

from faithbench.core.errors import FaithbenchError
from faithbench.data.hub import hub_reachable, prepare_offline
from faithbench.data.task_schema import HubSource
from faithbench.data.tasks import SOURCES, Placed, Task


class Digest(Protocol):
    """What hashlib gives: it may be asked at any time, and says what it has seen so far."""

    def hexdigest(self) -> str:
        """Return the digest of what was read."""
        ...


def dataset_cached(dataset: str, config: str | None, revision: str | None) -> bool:
    """Say whether this dataset can be read at this revision without the hub; cheap."""
    return _snapshot(dataset, revision) is not None or _prepared(dataset, config, revision)


def hub_rows(task: Task, split: str) -> tuple[Iterator[Placed], Digest]:
    """Return the rows of a split under our names, and a digest of their canonical JSON.

    The dataset is opened at once, its rows are read as they are asked for; the digest is that
    of all rows once the last one has been taken.
    """
    source = task.hub
    assert source is not None  # the caller has chosen the hub
    table = _load(task, source, split)
    check_columns(task, table.column_names)
    feature = table.features.get(source.columns.get("label", ""))
    names = list(getattr(feature, "names", None) or [])
    digest = hashlib.sha256()

    def rows() -> Iterator[Placed]:
        for number, found in enumerate(table):
            for row in our_rows(task, split, number, found, names):
                digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
                yield f"{source.dataset}, row {number}", row

    return rows(), digest


def _load(task: Task, source: HubSource, split: str) -> Any:
    prepare_offline()
    try:
        if not hub_reachable():
            return _load_offline(source, source.splits[split])
        import datasets

        return datasets.load_dataset(
            source.dataset, source.config, split=source.splits[split], revision=source.revision
        )
    # Four libraries raise here, and their errors have no common base.
    except Exception as error:
        others = [name for name in SOURCES if name != "hub" and getattr(task, name)]
        at = str(source.revision)[:8] if source.pinned else source.revision or "main"
        raise FaithbenchError(
            f"cannot load {source.dataset} at {at} from the hub "
            f"({type(error).__name__}: {' '.join(str(error).split())}); try again, or "
            f"use another source: {', '.join(others) or 'this task has none'}"
        ) from error


def _load_offline(source: HubSource, split: str) -> Any:
    """Read the files of the hub's own cache; without them, what `datasets` has prepared."""
    kept = _snapshot(source.dataset, source.revision) is not None
    if not kept and not _prepared(source.dataset, source.config, source.revision):
        raise ConnectionError("the hub does not answer, and no copy is in the local cache")
    import datasets
    from huggingface_hub import snapshot_download

    datasets.disable_progress_bars()  # nothing is fetched: there is hardly a wait to show
    if not kept:
        return datasets.load_dataset(
            source.dataset, source.config, split=split, revision=source.revision
        )
    folder = snapshot_download(
        source.dataset, repo_type="dataset", revision=source.revision, local_files_only=True
    )
    return datasets.load_dataset(folder, source.config, split=split)


def _snapshot(dataset: str, revision: str | None) -> Path | None:
    """Return where the hub's cache keeps a dataset's files, by commit or by the name of one."""
    home = Path(os.environ.get("HF_HUB_CACHE") or f"{_home()}/hub").expanduser()
    folder = home / f"datasets--{dataset.replace('/', '--')}"
    name = folder / "refs" / (revision or "main")
    commit = name.read_text().strip() if name.is_file() else revision
    found = folder / "snapshots" / commit if commit else None
    return found if found is not None and found.is_dir() and any(found.iterdir()) else None


def _prepared(dataset: str, config: str | None, revision: str | None) -> bool:
    """Say whether `datasets`, offline, would load this dataset at this revision.

    Offline it ignores the revision asked for and takes the newest folder
    `<cache>/<owner>___<name>/<config>/<version>/<commit>`: so that one must be ours.
    """
    root = Path(os.environ.get("HF_DATASETS_CACHE") or f"{_home()}/datasets").expanduser()
    *owner, name = dataset.split("/")
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    folders = (root / "___".join([*owner, name])).glob(f"{config or '*'}/*/*")
    ages = [(path.stat().st_mtime, path.name) for path in folders if path.is_dir()]
    return bool(ages) and revision in (None, max(ages)[1])


def _home() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.environ.get("HF_HOME") or f"{cache}/huggingface"


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

"""Datasets of the Hugging Face hub: is a copy here, and its rows under our names."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.data.hub import hub_reachable, prepare_offline
from faithbench.data.sources import PlacedRow, SplitRequest, SplitRows
from faithbench.data.task_schema import HubTable
from faithbench.data.tasks import Task

table = HubTable
remote = True

Row = dict[str, Any]


def obstacle(wanted: SplitRequest[HubTable]) -> str | None:
    """Return why this split cannot be read: no hub, and no copy on this machine."""
    dataset = wanted.table.dataset
    if dataset_cached(dataset, wanted.table.config, wanted.table.revision) or hub_reachable():
        return None
    return f"the hub is not reachable and {dataset} is not in the local cache"


def read(wanted: SplitRequest[HubTable]) -> SplitRows:
    """Open a split; its digest is that of the canonical JSON of all rows under our names."""
    source = wanted.table
    data = _load(wanted)
    check_columns(wanted.task, source, data.column_names)
    feature = data.features.get(source.columns.get("label", ""))
    names = list(getattr(feature, "names", None) or [])
    digest = hashlib.sha256()

    def rows() -> Iterator[PlacedRow]:
        # Rows are digested as they pass, all of them, also if a limit then takes a few: the digest
        # names the data and not the sample.
        for number, theirs in enumerate(data):
            for row in our_rows(wanted, number, theirs, names):
                digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
                yield f"{source.dataset}, row {number}", row

    return SplitRows(rows(), digest.hexdigest, source.rationale, source.pinned)


def dataset_cached(dataset: str, config: str | None, revision: str | None) -> bool:
    """Return whether this dataset can be read at this revision without the hub; cheap."""
    return _snapshot(dataset, revision) is not None or _prepared(dataset, config, revision)


def _load(wanted: SplitRequest[HubTable]) -> Any:
    source = wanted.table
    split = source.splits[wanted.split]
    prepare_offline()
    try:
        if not hub_reachable():
            return _load_offline(source, split)
        import datasets

        return datasets.load_dataset(
            source.dataset, source.config, split=split, revision=source.revision
        )
    # Four libraries raise here, and their errors have no common base.
    except Exception as error:
        others = [name for name in wanted.task.tables if name != "hub"]
        at = str(source.revision)[:8] if source.pinned else source.revision or "main"
        raise FaithbenchError(
            f"cannot load {source.dataset} at {at} from the hub "
            f"({type(error).__name__}: {' '.join(str(error).split())}); try again, or "
            f"use another source: {', '.join(others) or 'this task has none'}"
        ) from error


def _load_offline(source: HubTable, split: str) -> Any:
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
    """Return the folder of a dataset's files in the hub's cache, by commit or by branch.

    The layout is the one that huggingface_hub documents. `snapshot_download` would find the folder
    too, but takes half a second to import, which `faithbench list` has no use for.
    """
    from huggingface_hub.constants import HF_HUB_CACHE

    folder = Path(HF_HUB_CACHE) / f"datasets--{dataset.replace('/', '--')}"
    branch = folder / "refs" / (revision or "main")
    commit = branch.read_text().strip() if branch.is_file() else revision
    snapshot = folder / "snapshots" / commit if commit else None
    return snapshot if snapshot and snapshot.is_dir() and any(snapshot.iterdir()) else None


def _prepared(dataset: str, config: str | None, revision: str | None) -> bool:
    """Return whether `datasets`, offline, would load this dataset at this revision.

    Offline it ignores the revision asked for and takes the newest folder
    `<cache>/<owner>___<name>/<config>/<version>/<commit>`: so that one must be ours.
    """
    from huggingface_hub.constants import HF_HOME

    # As in `datasets.config`, whose import takes seconds: so only where the owner has data there.
    root = Path(os.environ.get("HF_DATASETS_CACHE") or f"{HF_HOME}/datasets").expanduser()
    *owner, name = dataset.split("/")
    if not any(root.glob("___".join([*owner, "*"]))):
        return False
    from datasets.naming import camelcase_to_snakecase

    prepared = root / "___".join([*owner, camelcase_to_snakecase(name)])
    folders = [path for path in prepared.glob(f"{config or '*'}/*/*") if path.is_dir()]
    ages = [(path.stat().st_mtime, path.name) for path in folders]
    return bool(ages) and revision in (None, max(ages)[1])


def our_rows(
    wanted: SplitRequest[HubTable], number: int, theirs: Row, names: list[str]
) -> Iterator[Row]:
    """Yield what a row of the hub says under our names; `names` are those of its labels."""
    task, source = wanted.task, wanted.table
    row: Row = {ours: _value(theirs, column) for ours, column in source.columns.items()}
    # Ids need not be unique across the hub's splits.
    row["id"] = f"{task.name}-{wanted.split}-{row.get('id', number)}"
    texts = (row["text"], row.get("text_b", "-"))
    if any(isinstance(text, str) and not text.strip() for text in texts):
        return  # some hub sets hold a few empty texts, of which nothing can be said
    try:
        yield from _LAYOUTS[source.layout](task, source, row, names)
    except (TypeError, ValueError) as error:
        raise FaithbenchError(
            f"{source.dataset}, row {number}: not of the layout {source.layout!r} ({error}); "
            f"fix hub.columns or hub.layout of task {task.name}"
        ) from error


def check_columns(task: Task, source: HubTable, names: list[str]) -> None:
    """Refuse a dataset that lacks a column the task file names."""
    needed = {column.partition(".")[0] for column in source.columns.values()}
    if absent := sorted(needed - set(names)):
        raise FaithbenchError(
            f"{source.dataset} has no column {absent[0]!r}, it has "
            f"{', '.join(names)}; fix hub.columns of task {task.name}"
        )


def _value(row: Row, path: str) -> Any:
    value: Any = row
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _plain(task: Task, source: HubTable, row: Row, names: list[str]) -> Iterator[Row]:
    label = row["label"]
    if source.values:
        if label not in source.values:
            return
        label = source.values.index(label)
    elif set(names) == set(task.labels) and label in range(len(names)):
        label = task.labels.index(names[label])
    yield row | {"label": label}


def _squad(task: Task, source: HubTable, row: Row, names: list[str]) -> Iterator[Row]:
    """Read answers kept as two lists; without one, the question has no answer."""
    given = row["answers"] if isinstance(row["answers"], dict) else {}
    texts, starts = given.get("text") or [], given.get("answer_start") or []
    pairs = zip(starts, texts, strict=True)
    answers = [{"start": start, "text": text} for start, text in pairs]
    yield row | {"answers": answers, "label": "answerable" if answers else "no_answer"}


def _cloze(task: Task, source: HubTable, row: Row, names: list[str]) -> Iterator[Row]:
    """Make one row of each sentence that holds a candidate: is the filler in it, and where?"""
    candidates = [_word(option) for option in row["options"]]
    filler = _word(row["answers"])
    for index, sentence in enumerate(row["text"]):
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
    return re.compile(rf"(?<!\w){re.escape(words)}(?!\w)")


_LAYOUTS: dict[str, Callable[[Task, HubTable, Row, list[str]], Iterator[Row]]] = {
    "plain": _plain,
    "squad": _squad,
    "cloze": _cloze,
}

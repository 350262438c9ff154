"""Datasets of the Hugging Face hub: is a copy here, and its rows under our names."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.data.columns import check_columns, our_rows
from faithbench.data.hub import hub_reachable, prepare_offline
from faithbench.data.hub_faults import telling_faults
from faithbench.data.sources import PlacedRow, SplitRequest, SplitRows
from faithbench.data.task_schema import HubTable

table = HubTable
remote = True


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
    check_columns(wanted, source.dataset, data.column_names)
    feature = data.features.get(source.columns.get("label", ""))
    names = list(getattr(feature, "names", None) or [])
    digest = hashlib.sha256()

    def rows() -> Iterator[PlacedRow]:
        # Rows are digested as they pass, all of them, also if a limit then takes a few: the digest
        # names the data and not the sample.
        for number, theirs in enumerate(data):
            place = f"{source.dataset}, row {number}"
            for row in our_rows(wanted, place, number, theirs, names):
                digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
                yield place, row

    return SplitRows(rows(), digest.hexdigest, source.rationale, source.pinned)


def dataset_cached(dataset: str, config: str | None, revision: str | None) -> bool:
    """Return whether this dataset can be read at this revision without the hub; cheap."""
    return _snapshot(dataset, revision) is not None or _prepared(dataset, config, revision)


def _load(wanted: SplitRequest[HubTable]) -> Any:
    source = wanted.table
    split = source.splits[wanted.split]
    others = ", ".join(name for name in wanted.task.tables if name != "hub")
    prepare_offline()
    with telling_faults(
        source.dataset, source.revision, f"use another source: {others or 'this task has none'}"
    ):
        if not hub_reachable():
            return _load_offline(source, split)
        import datasets

        data = datasets.load_dataset(
            source.dataset, source.config, split=split, revision=source.revision
        )
        _check_revision(data, source)
        return data


def _check_revision(data: Any, source: HubTable) -> None:
    """Refuse rows of another commit: `datasets` takes any that it has, if the hub refuses ours."""
    # They lie in `<cache>/<owner>___<name>/<config>/<version>/<commit>`.
    commits = {Path(file["filename"]).parent.name for file in data.cache_files}
    if source.pinned and commits - {str(source.revision)}:
        raise FaithbenchError(
            f"cannot load {source.dataset} at {str(source.revision)[:8]} from the hub, which "
            f"refused; another revision is in the local cache ({', '.join(sorted(commits))[:8]}), "
            "and is not what was asked for; try again, or run `hf auth login`"
        )


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

"""Made rows in the shape of each task: files of a folder, and a dataset in the hub's cache."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.data.task_schema import HubTable
from faithbench.data.tasks import Task

N = 60


def folder_rows(task: Task, stem: str) -> list[dict[str, Any]]:
    """Return rows for one file of a task's folder, with every field its splits need."""
    assert task.folder is not None
    rows = []
    for number in range(N):
        text = f"Row {number} of {stem}: a plain and rather good film."
        row: dict[str, Any] = {"id": f"{stem}-{number}", "label": number % len(task.labels)}
        row |= {"text": text} if task.kind == "classification" else {"text_a": text, "text_b": "Q?"}
        if task.rationale != "none":
            row["rationale"] = [[text.index("good"), text.index("good") + 4]]
        if task.kind == "qa" and task.labels[number % len(task.labels)] == "answerable":
            row["answers"] = [{"start": 0, "text": "Row", "ambiguous": 1}]
        if task.folder.layout == "cloze":
            # The second sentence holds no candidate.
            sentences = f"{text}\nNothing at all ."
            made = {"text": sentences, "text_b": "Q?", "answers": "good", "options": ["good", "x"]}
            row = {"id": row["id"]} | {its: made[o] for o, its in task.folder.columns.items()}
        if task.folder.layout == "typed":
            wanted, mark = task.folder.values[0], row.pop("rationale")[0]
            row["event_types"] = [wanted, "Binding"] if row["label"] else ["Binding"]
            row["triggers"] = [[0, 3, "Binding"], [*mark, wanted]]
        if task.folder.text_from:
            # A header that would be seen: made texts begin with "Row".
            row |= {"text": f"From: x\n\n{text}", task.folder.text_from: 9}
        if stem in task.folder.derive:
            row.setdefault(task.folder.derive[stem].by, f"article {number // 4}")
        rows.append(row)
    return rows


def put_folder(task: Task, root: Path) -> Task:
    """Write made files for a task, and return it without the sums of the real ones."""
    assert task.folder is not None
    place = root / task.folder.name
    place.mkdir()
    for stem in set(task.folder.splits.values()):
        lines = "".join(json.dumps(row) + "\n" for row in folder_rows(task, stem))
        (place / f"{stem}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    return task.model_copy(update={"folder": task.folder.model_copy(update={"sha256": {}})})


def use_hub_cache(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the Hugging Face libraries, offline, keep their files under a folder of the test's."""
    import datasets.config
    import huggingface_hub.constants

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HUB_CACHE", str(root / "hub"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(root / "datasets"))
    # They read the variables once, at import.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(root / "hub"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", root / "datasets")
    return root / "hub"


def put_hub(task: Task, cache: Path) -> None:
    """Lay out a made dataset as huggingface_hub would: refs, snapshots, and its files."""
    source = task.hub
    assert source is not None
    home = cache / f"datasets--{source.dataset.replace('/', '--')}"
    # `datasets` keeps what it prepared by the folder's name alone: a commit is nobody else's.
    made = hashlib.sha1(task.name.encode()).hexdigest()
    folder = home / "snapshots" / (str(source.revision) if source.pinned else made)
    folder.mkdir(parents=True)
    if not source.pinned:
        name = home / "refs" / (source.revision or "main")
        name.parent.mkdir(parents=True)
        name.write_text(made)
    for name, content in hub_files(task).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def hub_files(task: Task) -> dict[str, bytes]:
    """Return the files of a made dataset of the hub: a card, and parquet for every split."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = task.hub
    assert source is not None
    config = source.config or "default"
    card = ["---", "configs:", f"- config_name: {config}", "  data_files:"]
    files = {}
    for split in source.splits.values():
        card += [f"  - split: {split}", f"    path: {config}/{split}-*"]
        content = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(hub_table(task, source)), content)
        files[f"{config}/{split}-00000-of-00001.parquet"] = content.getvalue()
    return files | {"README.md": "\n".join([*card, "---", "# Made", ""]).encode()}


def hub_table(task: Task, source: HubTable) -> list[dict[str, Any]]:
    """Return rows under the hub's names; the last one is one that is to be left out."""
    values = source.values or range(len(task.labels))
    stray: Any = "other" if isinstance(values[0], str) else -1
    rows = []
    for number in range(12):
        last = number == 11
        ours: dict[str, Any] = {"id": number, "text": f"A good film {number}.", "text_b": "Why?"}
        if source.layout == "plain":
            ours["label"] = stray if source.values and last else values[number % len(values)]
            ours["text"] = " " if last and not source.values else ours["text"]
        elif source.layout == "squad":
            empty = number % 2 and "no_answer" in task.labels
            ours["answers"] = {
                "text": [] if empty else ["good"],
                "answer_start": [] if empty else [2],
            }
            ours["text"] = " " if last else ours["text"]
        else:
            ours["text"] = ["Ann met Bob.", "Bob and Annie.", "They left."]
            ours |= {"answers": "Ann", "options": ["Ann", "Bob"], "text_b": "XXXXX met Bob."}
        rows.append({theirs: ours[name] for name, theirs in source.columns.items()})
    return rows

"""Small tasks, data files and rows of results that several tests are built from."""

from __future__ import annotations

import copy
import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import Task
from faithbench.models.model import Model, build_model
from faithbench.records.rows import ResultRow, make_row

REVISION = "0123456789" * 4
ROWS: list[dict[str, Any]] = [
    {"id": "a", "text": "good film", "label": 1, "rationale": [[0, 4]]},
    {"id": "b", "text": "dull film", "label": "no", "rationale": None},
    {"id": "c", "text": "fine, warm film", "label": "yes", "rationale": [[0, 4], [6, 10]]},
]

KEY = "ab12"
HEAD = b'{"faithbench_rows":1,"key":"ab12"}\n'
LINE = (
    '{"backwards":1,"by_seed":{},"curve":[],"distinct_rows":7,"forwards":2,"gap":null,"id":"e1",'
    '"label":0,'
    '"more_scores":[],"probability":0.333333333,"right":false,"right_without_rationale":null,'
    '"rows_asked":9,"scores":[0.1,-2.0],"target":1,"tokens":["\u2028é","b\\n"],'
    '"values":{"aopc":null,"lodds":0.0}}\n'
).encode()


MINI = """\
name = "mini"
version = 1
title = "Mini"
kind = "classification"
labels = ["no", "yes"]
licence = "CC0"
citation = "none"
"""
"""The first lines of a small task's file."""


def make_task(**changes: Any) -> Task:
    fields: dict[str, Any] = {
        "name": "mini",
        "version": 1,
        "title": "Mini",
        "kind": "classification",
        "labels": ["no", "yes"],
        "rationale": "proxy",
        "licence": "CC0",
        "citation": "none",
        "folder": {"name": "mini", "splits": {"test": "test", "train": "learn"}},
        "hub": {
            "dataset": "owner/mini",
            "revision": REVISION,
            "splits": {"test": "validation"},
            "columns": {"text": "sentence", "label": "label", "id": "idx"},
        },
        "models": {},
    }
    return Task.model_validate(fields | changes)


def put(root: Path, rows: list[Any], *, packed: bool = False, stem: str = "test") -> Path:
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    text = "".join(f"{line}\n" for line in lines).encode()
    path = root / "mini" / f"{stem}.jsonl{'.gz' if packed else ''}"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text, mtime=0) if packed else text)
    return path


def complaint(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(FaithbenchError) as caught:
        load_dataset(*args, **kwargs)
    return str(caught.value)


def row(example: str = "e1", **parts: Any) -> ResultRow:
    given: dict[str, Any] = {
        "target": 1,
        "label": 0,
        "probability": 1 / 3,
        "tokens": ["\u2028é", "b\n"],
        "scores": [0.1, -2.0],
        "values": {"lodds": -1e-12, "aopc": None},
        "rows_asked": 9,
        "distinct_rows": 7,
        "forwards": 2,
        "backwards": 1,
    }
    given |= parts
    given.setdefault("right", given["target"] == given["label"])
    given |= {"scores": [given["scores"]], "values": [given["values"]]}
    return make_row(id=example, **given)


def line(example: str) -> bytes:
    return LINE.replace(b'"e1"', f'"{example}"'.encode())


def in_precision(model: Model, dtype: torch.dtype) -> Model:
    """Return a copy of a tiny model, in another precision."""
    network = torch.nn.Module.to(copy.deepcopy(model.network), dtype)
    return build_model(model.name, network, model.tokenizer, labels=model.labels)

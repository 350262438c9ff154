"""A small study of FRESH: a task in a folder, a tiny support model, and a tiny base."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from faithbench.data.tasks import load_task
from faithbench.training.fresh.extraction import Extraction
from faithbench.training.fresh.study import FreshRequest
from tests.support.builders import MINI
from tests.support.training import ADAPTER, save_base

TASK = (
    MINI
    + """\
rationale_ratio = 0.4
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
)
SIZES = {"train": 16, "dev": 4, "test": 12}


def put_study(folder: Path) -> Path:
    """Write task, data and a tiny model, which is support model and base; return the folder."""
    save_base(folder, "bert")
    return put_task(folder)


def put_task(folder: Path) -> Path:
    """Write task and data, and return the folder."""
    (folder / "mini.toml").write_text(TASK)
    (folder / "mini").mkdir()
    for split, size in SIZES.items():
        rows = [
            {"id": f"{split}{n}", "text": f"{('bad', 'good')[n % 2]} w{n} film the plot",
             "label": n % 2}
            for n in range(size)
        ]  # fmt: skip
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "mini" / f"{split}.jsonl").write_text(lines)
    return folder


def request_of(folder: Path, **changes: Any) -> FreshRequest:
    """Ask for attention's rationales under two seeds, one epoch each."""
    model = str(folder / "tiny-bert")
    asked = FreshRequest(
        jobs=1,
        task=load_task(str(folder / "mini.toml")),
        explainer="attention",
        how=Extraction(0.4),
        out=folder / "out",
        records=folder / "records",
        recipe=replace(ADAPTER, metric="macro_f1", epochs=1),
        models=(model,),
        seeds=2,
        base=model,
        folder=folder,
        device="cpu",
    )
    return replace(asked, **changes)

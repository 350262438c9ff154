"""The parts of a small record, as they are in its JSON text, and records changed by a forger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faithbench.core.seals import seal_json

SHA = "0" * 64
METRIC = {
    "version": 1,
    "family": "faithfulness",
    "higher_is_better": True,
    "mean": 0.25,
    "ci95": [0.0, 0.5],
    "n": 2,
    "skipped": 1,
    "proxy": False,
}
RECORD: dict[str, Any] = {
    "schema": 3,
    "task": {
        "name": "sst2",
        "version": 1,
        "kind": "classification",
        "split": "test",
        "n": 3,
        "source": "bundled",
        "data_sha256": SHA,
        "data_checked": True,
        "rationale": "proxy",
        "rationale_share": 0.25,
        "spans": {"whole": 3, "cut": 1, "lost": 0},
    },
    "model": {
        "name": "tiny",
        "revision": None,
        "sha256": None,
        "weights_sha256": SHA,
        "dtype": "float32",
        "accuracy": 1,
        "truncated": 0,
        "labels": ["négatif", "positive"],
        "tpr_drop": None,
        "precision": None,
    },
    "explainer": {
        "name": "random",
        "package": "faithbench",
        "version": "0.1.0",
        "settings": {"on": True, "steps": 1, "rate": 1.0, "mode": "a"},
        "assets": {"heads.json": SHA},
        "largest_gap": 0.25,
    },
    "seeds": [0],
    "protocol": {
        "version": 1,
        "operator": "mask",
        "erasure_token": "[MASK]",
        "long": "truncate",
        "encoder": None,
    },
    "metrics": {"aopc": METRIC},
    "rows": {"file": "a.jsonl", "sha256": SHA},
    "cost": {
        "rows_asked": 9,
        "distinct_rows": 7,
        "forwards_per_example": 3,
        "backwards_per_example": 0,
        "forward_equivalents_per_example": 3,
    },
    "timing": {
        "alone": 0,
        "seconds_median": None,
        "seconds_ci95": None,
        "peak_memory_bytes": None,
        "seconds_total": 0.5,
    },
    "environment": {
        "packages": {"numpy": "2.0"},
        "python": "3.11.7",
        "platform": "Linux-x86_64",
        "device": "cpu",
        "threads": 1,
    },
    "source": {"commit": None, "dirty": None},
}


def forge_record(path: Path, content: dict[str, Any]) -> None:
    """Write the JSON of a record under its right sha256, as a forger would."""
    bare = {key: value for key, value in content.items() if key != "sha256"}
    path.write_text(seal_json(bare), encoding="utf-8")


def stored_json(path: Path) -> dict[str, Any]:
    """Return the JSON of a record without its sha256."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    del content["sha256"]
    return content

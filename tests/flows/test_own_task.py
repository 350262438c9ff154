"""A task of the user's own: one TOML file, a file of JSON lines as it came, and a model."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from faithbench.testing import tiny
from tests.support.builders import MINI, put
from tests.support.commands import Call

TABLE = """
[folder]
name = "mini"
splits = { test = "test" }
columns = { text = "sentence.raw", label = "gold" }
values = ["bad", "good"]
"""
ROWS = [
    {"sentence": {"raw": "the film is good"}, "gold": "good", "source": "web"},
    {"sentence": {"raw": "a dull plot , and not very great"}, "gold": "bad", "source": "web"},
    {"sentence": {"raw": "the plot"}, "gold": "unsure"},
]
NOTE = "Note: split 'test' of task mini (folder) has fields that are not read: source (2 rows)\n"


def test_mapped_columns_from_the_card_to_a_record(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mini.toml").write_text(MINI + TABLE)
    put(tmp_path, ROWS)
    model = tiny.tiny_model(dtype=torch.float32)
    model.network.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    common = ("--data", tmp_path)
    card = call("show", "task", "mini.toml", *common)
    assert card.code == 0 and card.err.endswith(NOTE)
    assert "columns   text = sentence.raw, label = gold" in card.out
    assert "mini-test-1: no" in card.out and "the plot" not in card.out
    done = call(
        *("run", "--task", "mini.toml", "--model", tmp_path / "model", "--device", "cpu"),
        *("--explainer", "occlusion", "--metrics", "aopc", *common),
    )
    assert done.code == 0 and done.err.count("Note: ") == done.err.count(NOTE) == 1
    (record,) = (tmp_path / "results").rglob("occlusion*.json")
    assert json.loads(record.read_text())["task"]["n"] == 2

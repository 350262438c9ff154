"""`faithbench train` from its options to its folder, on a tiny base."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.cli import app as cli
from faithbench.testing import tiny
from tests.support.builders import MINI

TASK = (
    MINI
    + """\
[models]
[folder]
name = "mini"
splits = { train = "train", test = "test" }
"""
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a task, its data and a base; there is no dev split."""
    model = tiny.tiny_model(dtype=torch.float32)
    model.network.save_pretrained(tmp_path / "base")
    model.tokenizer.save_pretrained(tmp_path / "base")
    (tmp_path / "mini.toml").write_text(TASK)
    (tmp_path / "mini").mkdir()
    for split, size in (("train", 60), ("test", 6)):
        rows = [
            {"id": f"{split}{n}", "text": f"{('bad', 'good')[n % 2]} w{n} film", "label": n % 2}
            for n in range(size)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "mini" / f"{split}.jsonl").write_text(lines)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_options_reach_recipe_and_card(place: Path, capsys: Any, monkeypatch: Any) -> None:
    said = call(
        *(monkeypatch, capsys, "--full", "--seed", 3, "--epochs", 1, "--batch-size", 8),
        *("--limit", 20, "--test-limit", 4, "--max-tokens", 9, "--encoder-dropout", 0),
        *("--metric", "macro_f1", "--out", "here"),
    )
    card = json.loads((place / "here" / "card.json").read_text())
    recipe = card["recipe"]
    assert (recipe["method"], recipe["learning_rate"]) == ("full", 5e-5)
    assert (recipe["seed"], recipe["epochs"], recipe["batch_size"]) == (3, 1, 8)
    assert (recipe["max_tokens"], recipe["encoder_dropout"]) == (9, 0)
    assert recipe["metric"] == "macro_f1"
    assert {name: facts["n"] for name, facts in card["data"].items()} == {
        "train": 20,
        "dev": card["data"]["dev"]["n"],
        "test": 4,
    }
    assert card["data"]["dev"]["split"] == "train (held out)"
    last = said.splitlines()[-1]
    scores = ", ".join(f"{name} {value:.4f}" for name, value in card["test"].items())
    best = card["dev_by_epoch"][0]
    assert last == f"test: {scores}; dev: macro_f1 {best:.4f}; use it with --model here"


def test_an_adapter_goes_to_models_by_default(place: Path, capsys: Any, monkeypatch: Any) -> None:
    said = call(monkeypatch, capsys, "--epochs", 1, "--rank", 2)
    assert said.splitlines()[-1].endswith("use it with --model models/mini")
    card = json.loads((place / "models" / "mini" / "card.json").read_text())
    recipe = card["recipe"]
    assert (recipe["method"], recipe["rank"], recipe["alpha"]) == ("lora", 2, 4)
    assert recipe["learning_rate"] == 1e-3 and recipe["metric"] == "accuracy"
    assert (place / "models" / "mini" / "adapter_model.safetensors").is_file()


@pytest.mark.usefixtures("place")
def test_an_unknown_objective_is_refused(capsys: Any, monkeypatch: Any) -> None:
    words = ("train", "--task", "mini.toml", "--data", ".", "--objective", "crossentropy")
    monkeypatch.setattr(sys, "argv", ["faithbench", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code
    error = " ".join(capsys.readouterr().err.split())
    assert "no objective named 'crossentropy'; did you mean 'cross-entropy'?" in error


def call(monkeypatch: Any, capsys: Any, *words: object) -> str:
    given = ("train", "--task", "mini.toml", "--data", ".", "--base", "base", "--device", "cpu")
    monkeypatch.setattr(sys, "argv", ["faithbench", *map(str, (*given, *words))])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    said: str = capsys.readouterr().out
    return said

"""`train` and `heads` from their options to their files, on a tiny base."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.cli import app as cli
from faithbench.explainers.passes.heads import read_heads
from faithbench.testing import tiny
from faithbench.training.head_statistics import Arc
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
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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


def test_a_network_from_scratch(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    out = call(
        *(monkeypatch, capsys, "--arch", "cnn", "--vectors", "random", "--width", 8),
        *("--epochs", 1, "--out", "there"),
        base=False,
    )
    card = json.loads((folder / "there" / "card.json").read_text())
    recipe = card["recipe"]
    assert (recipe["method"], recipe["learning_rate"]) == ("full", 1e-3)
    assert (recipe["arch"], recipe["vectors"], recipe["width"]) == ("cnn", "random", 8)
    assert recipe["encoder_dropout"] == 0.5 and card["base"] == "random vectors"
    assert "projection" not in recipe and "amsgrad" not in recipe
    config = json.loads((folder / "there" / "config.json").read_text())
    assert (config["model_type"], config["hidden_size"]) == ("cnn", 8)
    assert out.endswith("use it with --model there\n")


def test_a_network_with_sparse_attention(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    call(
        *(monkeypatch, capsys, "--arch", "bilstm", "--projection", "sparsegen:.50"),
        *("--vectors", "random", "--width", 8, "--epochs", 1, "--out", "there"),
        base=False,
    )
    recipe = json.loads((folder / "there" / "card.json").read_text())["recipe"]
    assert (recipe["arch"], recipe["projection"]) == ("bilstm", "sparsegen:0.5")
    assert (recipe["encoder_dropout"], recipe["learning_rate"]) == (0.3, 1e-3)
    assert (recipe["amsgrad"], recipe["weight_decay"]) == (True, 0)
    config = json.loads((folder / "there" / "config.json").read_text())
    assert (config["model_type"], config["projection"]) == ("bilstm", "sparsegen:0.5")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arch", "bilstm", "--projection", "sparsegen:1"), "needs a lambda below 1"),
        (("--arch", "bilstm", "--projection", "sparsegen:1.5"), "needs a lambda below 1"),
        (
            ("--arch", "transformer", "--projection", "sparsmax"),
            "no projection named 'sparsmax'; did you mean 'sparsemax'",
        ),
        (("--projection", "sparsemax"), "give --arch bilstm or transformer"),
    ],
)
def test_a_bad_projection_is_refused_before_data_are_read(
    words: tuple[str, ...], said: str, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(sys, "argv", ["faithbench", "train", "--task", "sst2", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code
    assert said in " ".join(capsys.readouterr().err.split())


def test_options_reach_recipe_and_card(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    out = call(
        *(monkeypatch, capsys, "--full", "--seed", 3, "--epochs", 1, "--batch-size", 8),
        *("--limit", 20, "--test-limit", 4, "--max-tokens", 9, "--encoder-dropout", 0),
        *("--metric", "macro_f1", "--out", "here"),
    )
    card = json.loads((folder / "here" / "card.json").read_text())
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
    last = out.splitlines()[-1]
    scores = ", ".join(f"{name} {value:.4f}" for name, value in card["test"].items())
    best = card["dev_by_epoch"][0]
    assert last == f"test: {scores}; dev: macro_f1 {best:.4f}; use it with --model here"


def test_an_adapter_goes_to_models_by_default(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    out = call(monkeypatch, capsys, "--epochs", 1, "--rank", 2)
    assert out.splitlines()[-1].endswith("use it with --model models/mini")
    card = json.loads((folder / "models" / "mini" / "card.json").read_text())
    recipe = card["recipe"]
    assert (recipe["method"], recipe["rank"], recipe["alpha"]) == ("lora", 2, 4)
    assert recipe["learning_rate"] == 1e-3 and recipe["metric"] == "accuracy"
    assert (folder / "models" / "mini" / "adapter_model.safetensors").is_file()


@pytest.mark.usefixtures("folder")
def test_an_unknown_objective_is_refused(capsys: Any, monkeypatch: Any) -> None:
    words = ("train", "--task", "mini.toml", "--data", ".", "--objective", "crossentropy")
    monkeypatch.setattr(sys, "argv", ["faithbench", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code
    error = " ".join(capsys.readouterr().err.split())
    assert "no objective named 'crossentropy'; did you mean 'cross-entropy'?" in error


def test_a_grid_is_trained_and_tabulated(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    words = ("--full", "--base", "base", "--epochs", 1, "--out", "grid")
    out = call(
        monkeypatch, capsys, *words, "--objective", "saloss", "--grid", "weight=0,1",
        "--grid-metric", "flip_fraction@attention",
    )  # fmt: skip
    report = json.loads((folder / "grid" / "grid.json").read_text())
    lines = out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    assert lines[-1] == (
        f"chosen: weight={report['chosen']}; use it with --model grid/weight={report['chosen']}"
    )
    cells = [line.split("│")[1:-1] for line in lines if line.startswith("│")]
    shown = [[cell.strip() for cell in row] for row in cells]
    assert [row[:2] for row in shown] == [
        [trial["value"], f"{trial['dev']:.4f}"] for trial in report["tried"]
    ]


@pytest.mark.usefixtures("folder")
def test_a_grid_metric_without_a_grid_is_refused(capsys: Any, monkeypatch: Any) -> None:
    words = ("train", "--task", "mini.toml", "--data", ".", "--grid-metric", "accuracy")
    monkeypatch.setattr(sys, "argv", ["faithbench", *words])
    with pytest.raises(SystemExit):
        cli.main()
    assert "--grid-metric chooses from a grid; give --grid as well" in " ".join(
        capsys.readouterr().err.split()
    )


def test_heads_are_written_and_tabulated(folder: Path, capsys: Any, monkeypatch: Any) -> None:
    """On dev examples of the folder, with arcs that stand for a parser's."""
    (folder / "mini" / "dev.jsonl").write_text((folder / "mini" / "test.jsonl").read_text())
    splits = '{ train = "train", dev = "dev", test = "test" }'
    (folder / "mini.toml").write_text(TASK.replace('{ train = "train", test = "test" }', splits))
    monkeypatch.setattr("faithbench.training.head_calibration.spacy_parse", first_word_heads)
    words = ("--model", "base", "--sentences", 20, "--examples", 4, "--coarse", "--out", "h.json")
    out = call(monkeypatch, capsys, *words, command="heads")
    statistics = read_heads(folder / "h.json")
    assert (statistics.sentences, statistics.split) == (20, "train")
    assert statistics.relations["nsubj"].pairs == 20
    assert statistics.calibration is not None and statistics.calibration.examples == 4
    assert len(statistics.calibration.grid) <= 9
    lines = out.splitlines()
    assert max(map(len, lines[:-2])) <= 80
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line[0] == "│"]
    first, *others = statistics.calibration.grid
    assert rows[0] == ["no mask", "", str(first.heads), f"{first.aopc:.4f}", "", "", "", ""]
    masks = {(row[0], row[1]): row[2:] for row in rows[1:]}
    assert masks
    for trial in others:
        shown = masks.get((f"{trial.xi_syntactic:g}", f"{trial.xi_positional:g}"))
        change = f"{trial.aopc - first.aopc:+.4f}"
        # Of equal masks one is shown; four texts are too few for a test.
        assert shown is None or shown[:3] == [str(trial.heads), f"{trial.aopc:.4f}", change]
        assert shown is None or shown[3:] == [f"{trial.error:.4f}", "-", "-"]
    assert lines[-2].startswith(f"{statistics.calibration.verdict} (4 texts): lrp-mask takes ")
    assert out.splitlines()[-1] == "written: h.json"


def first_word_heads(texts: Iterable[str]) -> Iterator[list[Arc]]:
    """Call the first word of each text the subject of its second."""
    for text in texts:
        first, second = (match.span() for match in list(re.finditer(r"\w+", text))[:2])
        yield [Arc("nsubj", first, second, 1)]


def call(
    monkeypatch: Any, capsys: Any, *words: object, command: str = "train", base: bool = True
) -> str:
    given = (command, "--task", "mini.toml", "--data", ".", "--device", "cpu")
    given += ("--base", "base") if command == "train" and base else ()
    monkeypatch.setattr(sys, "argv", ["faithbench", *map(str, (*given, *words))])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code
    out: str = capsys.readouterr().out
    return out

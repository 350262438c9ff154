"""Training a small adapter on the real encoder: what is written, and what survives a kill."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from faithbench.data import load_dataset
from faithbench.encoding import encode
from faithbench.errors import FaithbenchError
from faithbench.evaluation import accuracy
from faithbench.models import load_model
from faithbench.tasks import load_task
from faithbench.training.fit import Recipe, Splits, _batches, _schedule, fit
from faithbench.types import Example
from faithbench.weights import BASE_SHA256, base_encoder, file_sha256

RECIPE = Recipe(epochs=2, rank=2, alpha=4, batch_size=8, learning_rate=1e-2)
TASK = """
name = "mini"
version = 1
title = "Mini"
kind = "classification"
labels = ["no", "yes"]
licence = "CC0"
citation = "none"
[models]
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
KEPT = {"adapter_config.json", "adapter_model.safetensors", "card.json"}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Sums depend on how many threads share them, and small ones are slower shared."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def splits(tmp_path_factory: pytest.TempPathFactory) -> Splits:
    """Sixteen, eight and six short sentences, in a folder of their own."""
    root = tmp_path_factory.mktemp("machine-of-mine")
    (root / "mini.toml").write_text(TASK)
    (root / "mini").mkdir()
    for split, count in (("train", 16), ("dev", 8), ("test", 6)):
        rows = [sentence(split, number) for number in range(count)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (root / "mini" / f"{split}.jsonl").write_text(lines)
    task = load_task(str(root / "mini.toml"))
    parts = [load_dataset(task, split=name, folder=root) for name in ("train", "dev", "test")]
    return Splits(*parts)


@pytest.fixture(scope="module")
def trained(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """One training without interruption, and what it reported."""
    out = tmp_path_factory.mktemp("machine-of-mine") / "trained"
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fit(splits, RECIPE, out, lambda *step: said.append("{} {}/{}".format(*step)))
    return out, said


@pytest.fixture(scope="module")
def halved(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training, killed in its second epoch."""
    out = tmp_path_factory.mktemp("machine-of-mine") / "halved"
    with pytest.raises(KeyboardInterrupt):
        fit(splits, RECIPE, out, killer("epoch 2/2", 1))
    return out


def test_the_card(splits: Splits, trained: tuple[Path, list[str]]) -> None:
    out, _ = trained
    card = json.loads((out / "card.json").read_text())
    assert card == {
        "adapter_sha256": file_sha256(out / "adapter_model.safetensors"),
        "base": "sentence-transformers/all-MiniLM-L6-v2",
        "base_sha256": BASE_SHA256,
        "data": {
            name: {
                "n": n,
                "sha256": getattr(splits, name).sha256,
                "source": "folder",
                "split": name,
            }
            for name, n in (("train", 16), ("dev", 8), ("test", 6))
        },
        "dev_accuracy_by_epoch": card["dev_accuracy_by_epoch"],
        "labels": ["no", "yes"],
        "recipe": {
            "alpha": 4,
            "batch_size": 8,
            "dropout": 0.1,
            "epochs": 2,
            "learning_rate": 0.01,
            "rank": 2,
            "seed": 0,
            "targets": ["query", "key", "value", "dense"],
            "warmup": 0.06,
            "weight_decay": 0.01,
        },
        "task": "mini",
        "test_accuracy": card["test_accuracy"],
    }
    # Eighths and sixths: the shares of eight dev and six test sentences.
    assert len(card["dev_accuracy_by_epoch"]) == 2
    assert all(value * 8 == round(value * 8) for value in card["dev_accuracy_by_epoch"])
    assert card["test_accuracy"] * 6 == pytest.approx(round(card["test_accuracy"] * 6), abs=1e-3)
    assert max(card["dev_accuracy_by_epoch"]) >= 0.75, "these sentences are easily told apart"


def test_the_files(trained: tuple[Path, list[str]]) -> None:
    out, _ = trained
    assert {path.name for path in out.iterdir()} == KEPT
    tensors = load_file(out / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    shapes = Counter(tuple(v.shape) for k, v in tensors.items() if "layer.0.attention" in k)
    # Rank 2 on query, key, value and the output of six blocks of width 384.
    assert shapes == {(2, 384): 4, (384, 2): 4}
    grown = [value for name, value in tensors.items() if "lora_B" in name]
    assert len(grown) == 37 and all(value.abs().max() > 0 for value in grown), "B starts at 0"
    settings = json.loads((out / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "sentence-transformers/all-MiniLM-L6-v2"
    assert settings["target_modules"] == ["dense", "key", "query", "value"]


def test_no_file_names_this_machine(trained: tuple[Path, list[str]], halved: Path) -> None:
    names = {path.name for path in halved.iterdir()}
    assert names == (KEPT - {"card.json"}) | {"run.json", "checkpoint.safetensors"}
    for folder in (trained[0], halved):
        for path in folder.iterdir():
            content = path.read_bytes()
            for place in ("machine-of-mine", str(base_encoder()), str(Path.home())):
                assert place.encode() not in content, path


def test_the_folder_loads_as_the_model_that_was_measured(
    splits: Splits, trained: tuple[Path, list[str]]
) -> None:
    out, _ = trained
    model = load_model(str(out), labels=("no", "yes"), device="cpu")
    card = json.loads((out / "card.json").read_text())
    assert model.folder == out
    assert round(accuracy(model, splits.test), 4) == card["test_accuracy"]
    best = max(card["dev_accuracy_by_epoch"])
    assert abs(accuracy(model, splits.dev) - best) <= 1 / 8, "half precision may turn one"
    bare = load_file(base_encoder() / "model.safetensors")["encoder.layer.0.output.dense.weight"]
    merged = model.network.bert.encoder.layer[0].output.dense.weight
    adapter = load_file(out / "adapter_model.safetensors")
    name = "base_model.model.bert.encoder.layer.0.output.dense.lora_{}.weight"
    a, b = (adapter[name.format(side)].float() for side in "AB")
    torch.testing.assert_close(merged, bare + 2 * b @ a)  # alpha / rank is 2


def test_progress(trained: tuple[Path, list[str]]) -> None:
    _, said = trained
    assert said == [
        *(f"epoch 1/2 {step}/2" for step in (1, 2)),
        "accuracy on dev 8/8",
        *(f"epoch 2/2 {step}/2" for step in (1, 2)),
        "accuracy on dev 8/8",
        "accuracy on test 6/6",
    ]


def test_other_settings_or_data_do_not_continue(splits: Splits, halved: Path) -> None:
    before = {path.name: path.read_bytes() for path in halved.iterdir()}
    shorter = replace(splits, train=replace(splits.train, sha256="0" * 64))
    for data, recipe in ((splits, replace(RECIPE, seed=1)), (shorter, RECIPE)):
        with pytest.raises(FaithbenchError, match="holds a training with other data or settings"):
            fit(data, recipe, halved, silent)
    assert {path.name: path.read_bytes() for path in halved.iterdir()} == before


def test_a_killed_training_continues_to_the_same_bytes(
    splits: Splits, trained: tuple[Path, list[str]], halved: Path
) -> None:
    """Killed in the second epoch, and once more while the finished adapter was measured."""
    said: list[str] = []
    kill = killer("accuracy on test", 6)

    def progress(*step: Any) -> None:
        said.append(step[0])
        kill(*step)

    with pytest.raises(KeyboardInterrupt):
        fit(splits, RECIPE, halved, progress)
    assert said == ["epoch 2/2"] * 2 + ["accuracy on dev", "accuracy on test"]
    said.clear()
    card = fit(splits, RECIPE, halved, lambda *step: said.append(step[0]))
    assert said == ["accuracy on test"]
    assert card["test_accuracy"] == json.loads((halved / "card.json").read_text())["test_accuracy"]
    assert {path.name for path in halved.iterdir()} == KEPT
    for name in KEPT:
        assert (halved / name).read_bytes() == (trained[0] / name).read_bytes(), name


def test_a_finished_folder_is_not_trained_again(
    splits: Splits, trained: tuple[Path, list[str]]
) -> None:
    out, _ = trained
    for recipe in (RECIPE, replace(RECIPE, epochs=3)):
        with pytest.raises(FaithbenchError, match="already holds a trained model; choose another"):
            fit(splits, recipe, out, silent)
    assert {path.name for path in out.iterdir()} == KEPT


def test_the_learning_rate_rises_then_falls() -> None:
    """Of 100 steps, six rise to 1; the other 94 fall by equal steps, the last one to 1/94."""
    rates = [_schedule(step, 100, 0.06) for step in range(100)]
    assert rates[:8] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1, 1, 93 / 94])
    assert rates[-1] == pytest.approx(1 / 94)
    assert [_schedule(step, 4, 0.06) for step in range(4)] == pytest.approx([1, 1, 2 / 3, 1 / 3])
    assert _schedule(0, 1, 0.06) == 1


def test_batches_hold_each_example_once_and_change_with_epoch_and_seed(tiny_model) -> None:
    model = tiny_model()
    texts = [" ".join(["good"] * (1 + number % 5)) for number in range(11)]
    encodings = [encode(model, Example(f"e{n}", text, 0)) for n, text in enumerate(texts)]

    fours = replace(RECIPE, batch_size=4)

    def ids(recipe: Recipe, epoch: int) -> list[list[str]]:
        return [[e.example.id for e in batch] for batch in _batches(encodings, recipe, epoch)]

    found = ids(fours, 0)
    assert sorted(len(batch) for batch in found) == [3, 4, 4]
    assert sorted(i for batch in found for i in batch) == sorted(f"e{n}" for n in range(11))
    assert found == ids(fours, 0)
    assert found != ids(fours, 1)
    assert found != ids(replace(fours, seed=1), 0)
    # Neighbours are of like length: each batch of a pool spans a part of the lengths only.
    spans = sorted(
        (min(len(e.ids) for e in batch), max(len(e.ids) for e in batch))
        for batch in _batches(encodings, fours, 0)
    )
    assert spans == [(3, 4), (4, 6), (6, 7)]


def sentence(split: str, number: int) -> dict[str, Any]:
    label = number % 2
    mood = ("dreadful, dull and boring", "wonderful, moving and clever")[label]
    thing = ("film", "plot", "cast", "score", "ending", "dialogue")[number % 6]
    return {"id": f"{split}-{number}", "text": f"The {thing} was {mood} {number}", "label": label}


def silent(*_: Any) -> None:
    """Report to nobody."""


def killer(stage: str, at: int) -> Any:
    """Return a progress callback that stops the process, as it were, at a step of a stage."""

    def progress(name: str, done: int, _total: int) -> None:
        if (name, done) == (stage, at):
            raise KeyboardInterrupt

    return progress

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

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.models.evaluation import accuracy
from faithbench.models.files.weights import BASE_SHA256, base_encoder, read_card
from faithbench.models.model import load_model
from faithbench.training.fit import fit, over
from faithbench.training.recipe import Recipe, Splits
from tests.support.builders import MINI
from tests.support.training import killer, silent

RECIPE = Recipe(epochs=2, rank=2, alpha=4, batch_size=8, learning_rate=1e-2)
TASK = (
    MINI
    + """\
[models]
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
)
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
    steps: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        fit(splits, RECIPE, out, lambda *step: steps.append("{} {}/{}".format(*step)))
    return out, steps


@pytest.fixture(scope="module")
def halved(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same training, killed in its second epoch."""
    out = tmp_path_factory.mktemp("machine-of-mine") / "halved"
    with pytest.raises(KeyboardInterrupt):
        fit(splits, RECIPE, out, killer("epoch 2/2", 1))
    return out


def test_the_card(splits: Splits, trained: tuple[Path, list[str]]) -> None:
    out, _ = trained
    card = read_card(out)
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
        "class_weights": None,
        "dev_by_epoch": card["dev_by_epoch"],
        "kind": "classification",
        "labels": ["no", "yes"],
        "left_out": {},
        "majority": {"accuracy": 0.5, "macro_f1": 0.3333, "matthews": 0.0},
        "published": [],
        "recipe": {
            "alpha": 4,
            "batch_size": 8,
            "dropout": 0.1,
            "encoder_dropout": 0.1,
            "excerpts": [],
            "excerpts_alone": False,
            "epochs": 2,
            "learning_rate": 0.01,
            "max_tokens": None,
            "method": "lora",
            "metric": "accuracy",
            "patience": 2,
            "rank": 2,
            "seed": 0,
            "targets": ["query", "key", "value", "dense"],
            "warmup": 0.06,
            "weight_decay": 0.01,
        },
        "task": "mini",
        "task_version": 1,
        "test": card["test"],
    }
    # Eighths and sixths: the shares of eight dev and six test sentences.
    assert len(card["dev_by_epoch"]) == 2
    assert all(value * 8 == round(value * 8) for value in card["dev_by_epoch"])
    right = card["test"]["accuracy"] * 6
    assert right == pytest.approx(round(right), abs=1e-3)
    assert set(card["test"]) == {"accuracy", "macro_f1", "matthews"}
    assert max(card["dev_by_epoch"]) >= 0.75, "these sentences are easily told apart"


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
            for local in ("machine-of-mine", str(base_encoder()), str(Path.home())):
                assert local.encode() not in content, path


def test_the_folder_loads_as_the_model_that_was_measured(
    splits: Splits, trained: tuple[Path, list[str]]
) -> None:
    out, _ = trained
    model = load_model(str(out), labels=("no", "yes"), device="cpu")
    card = json.loads((out / "card.json").read_text())
    assert model.folder == out
    assert round(accuracy(model, splits.test), 4) == card["test"]["accuracy"]
    best = max(card["dev_by_epoch"])
    assert abs(accuracy(model, splits.dev) - best) <= 1 / 8, "half precision may turn one"
    bare = load_file(base_encoder() / "model.safetensors")["encoder.layer.0.output.dense.weight"]
    merged = model.network.bert.encoder.layer[0].output.dense.weight
    adapter = load_file(out / "adapter_model.safetensors")
    name = "base_model.model.bert.encoder.layer.0.output.dense.lora_{}.weight"
    a, b = (adapter[name.format(side)].float() for side in "AB")
    torch.testing.assert_close(merged, bare + 2 * b @ a)  # alpha / rank is 2


def test_progress(trained: tuple[Path, list[str]]) -> None:
    _, steps = trained
    assert steps == [
        "reading train 16/16",
        *(f"epoch 1/2 {step}/2" for step in (1, 2)),
        "scoring dev 8/8",
        *(f"epoch 2/2 {step}/2" for step in (1, 2)),
        "scoring dev 8/8",
        "scoring test 6/6",
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
    steps: list[str] = []
    kill = killer("scoring test", 6)

    def progress(*step: Any) -> None:
        steps.append(step[0])
        kill(*step)

    with pytest.raises(KeyboardInterrupt):
        fit(splits, RECIPE, halved, progress)
    assert steps == ["reading train", *["epoch 2/2"] * 2, "scoring dev", "scoring test"]
    steps.clear()
    card = fit(splits, RECIPE, halved, lambda *step: steps.append(step[0]))
    assert steps == ["reading train", "scoring test"]
    assert card == read_card(halved)
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


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ((), False),
        ((0.5,), False),
        ((0.5, 0.4), False),
        ((0.5, 0.4, 0.5), False),
        ((0.5, 0.4, 0.4), True),
        ((0.5, 0.6, 0.5, 0.55), True),
        ((0.5, 0.6, 0.7, 0.8, 0.9), True),
    ],
)
def test_a_training_is_over(history: tuple[float, ...], expected: bool) -> None:
    """Five epochs, or two in a row that are below the best; a tie is no worse."""
    assert over(history, Recipe(epochs=5, patience=2)) == expected


def sentence(split: str, number: int) -> dict[str, Any]:
    label = number % 2
    mood = ("dreadful, dull and boring", "wonderful, moving and clever")[label]
    thing = ("film", "plot", "cast", "score", "ending", "dialogue")[number % 6]
    return {"id": f"{split}-{number}", "text": f"The {thing} was {mood} {number}", "label": label}

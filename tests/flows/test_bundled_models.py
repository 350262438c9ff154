"""Every bundled model: small, whole, the one its card describes, and better than a guess."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from safetensors import safe_open

from faithbench.core.files import file_sha256
from faithbench.data.tasks import load_task
from faithbench.models.files.weights import BASE_NAME, BASE_SHA256, BUNDLED, read_card
from faithbench.models.model import load_model
from faithbench.training.recipe import usual_metric

NAMES = sorted(path.parent.name for path in BUNDLED.glob("*/adapter_model.safetensors"))
# What each reached on its test split when it was trained, rounded down.
REACHED = {
    "agnews": 0.9,
    "cad-nli": 0.63,
    "cola": 0.18,
    "evinf": 0.58,
    "hatexplain": 0.77,
    "imdb": 0.9,
    "movies": 0.84,
    "mrpc": 0.81,
    "multirc": 0.5,
    "semeval": 0.66,
    "squad": 0.59,
    "squad2": 0.54,
    "sst2": 0.89,
    "yelp": 0.92,
}
# Hardly better than always saying "no answer": 6,565 questions are too few to learn when to answer.
WEAK = {"squad2"}
# Its accuracy is below that of always saying "false"; ERASER's score tells it from that.
JUDGED_BY = {"multirc": "macro_f1"}


def test_there_is_a_floor_for_every_model() -> None:
    assert sorted(REACHED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_card(name: str) -> None:
    card, task = read_card(BUNDLED / name), load_task(name)
    assert (card["task"], card["task_version"], card["kind"]) == (name, task.version, task.kind)
    assert card["labels"] == list(task.labels)
    assert (card["base"], card["base_sha256"]) == (BASE_NAME, BASE_SHA256)
    assert card["recipe"]["method"] == "lora"
    assert card["recipe"]["metric"] == usual_metric(task)
    assert 1 <= len(card["dev_by_epoch"]) <= card["recipe"]["epochs"]
    assert card["published"] == [score.model_dump() for score in task.published]
    folder = task.folder
    assert folder is not None
    for split, facts in card["data"].items():
        assert facts["source"] == "folder"
        assert facts["sha256"] == folder.sha256[folder.splits[facts["split"]]]
        assert facts["n"] <= folder.rows.get(split, facts["n"])


@pytest.mark.parametrize("name", NAMES)
def test_it_is_better_than_the_majority(name: str) -> None:
    card = read_card(BUNDLED / name)
    metric = JUDGED_BY.get(name, card["recipe"]["metric"])
    reached = card["test"][metric]
    assert REACHED[name] <= reached < REACHED[name] + 0.01
    margin = 0.01 if name in WEAK else 0.03
    assert reached > (card["majority"] or {metric: 0.0})[metric] + margin


@pytest.mark.parametrize("name", NAMES)
def test_files_are_small_half_precision_and_the_card_s(name: str) -> None:
    folder = BUNDLED / name
    weights = folder / "adapter_model.safetensors"
    assert weights.stat().st_size < 2_000_000
    assert file_sha256(weights) == read_card(folder)["adapter_sha256"]
    with safe_open(weights, "pt") as file:
        kinds = {file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118  # no dict
    assert kinds == {"F16"}


@pytest.mark.parametrize("name", NAMES)
def test_it_loads_with_the_head_of_its_task(name: str) -> None:
    task = load_task(name)
    model = load_model(f"bundled:{name}", labels=task.labels, kind=task.kind, device="cpu")
    network: Any = model.network
    head = network.qa_outputs if task.kind == "qa" else network.classifier
    assert head.weight.shape == (2 if task.kind == "qa" else len(task.labels), 384)
    assert torch.isfinite(head.weight).all()
    assert model.max_tokens == 512

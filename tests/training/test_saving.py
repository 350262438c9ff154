"""Checkpoints that restore every bit, and the files of the best epoch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

from faithbench.core.files import file_sha256
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.saving import ADAPTER as ADAPTER_FILE
from faithbench.training.saving import WHOLE as WHOLE_FILE
from faithbench.training.saving import (
    TrainingState,
    forget_checkpoint,
    load_checkpoint,
    save_best,
    save_checkpoint,
    weights_facts,
)
from tests.support.training import ADAPTER, WHOLE, label_splits, save_base


def test_nothing_saved_changes_nothing(tmp_path: Path) -> None:
    network, optimizer = start()
    before = [p.clone() for p in network.parameters()]
    assert load_checkpoint(tmp_path, dict(network.named_parameters()), optimizer) == TrainingState()
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters(), strict=True))
    assert len(optimizer.state) == 0


@pytest.mark.parametrize("amsgrad", [False, True])
def test_a_continued_training_equals_an_uninterrupted_one(tmp_path: Path, amsgrad: bool) -> None:
    whole, steady = start(amsgrad=amsgrad)
    train(whole, steady, range(6))
    first, optimizer = start(amsgrad=amsgrad)
    train(first, optimizer, range(3))
    save_checkpoint(
        tmp_path, dict(first.named_parameters()), optimizer, TrainingState((0.5, 0.75), 7)
    )
    second, restored = start(seed=9, amsgrad=amsgrad)
    assert not torch.equal(second.weight, first.weight)
    state = load_checkpoint(tmp_path, dict(second.named_parameters()), restored)
    assert state == TrainingState((0.5, 0.75), 7)
    assert torch.equal(second.weight, first.weight) and torch.equal(second.bias, first.bias)
    train(second, restored, range(3, 6))
    assert torch.equal(second.weight, whole.weight) and torch.equal(second.bias, whole.bias)
    # The moments matter: without them the same three steps end elsewhere.
    forgetful = torch.optim.AdamW(first.parameters(), lr=0.1)
    train(first, forgetful, range(3, 6))
    assert (first.weight - whole.weight).abs().max() > 1e-3


def test_the_file_holds_weights_moments_and_history(tmp_path: Path) -> None:
    network, optimizer = start()
    train(network, optimizer, range(2))
    save_checkpoint(tmp_path, dict(network.named_parameters()), optimizer, TrainingState((0.25,)))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]
    with safe_open(tmp_path / "checkpoint.safetensors", framework="pt") as file:
        assert set(file.keys()) == {
            f"{part}/{name}"
            for part in ("weight", "exp_avg", "exp_avg_sq", "step")
            for name in ("weight", "bias")
        } | {"random/cpu"}
        assert file.get_tensor("step/bias").item() == 2
        assert torch.equal(file.get_tensor("weight/bias"), network.bias)
        moment = optimizer.state[network.weight]["exp_avg_sq"]
        assert torch.equal(file.get_tensor("exp_avg_sq/weight"), moment)
        assert json.loads(file.metadata()["history"]) == [0.25]
        assert file.metadata()["batch"] == "0"
    forget_checkpoint(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_random_numbers_go_on_where_they_were(tmp_path: Path) -> None:
    """Dropout inside an epoch must draw what it would have drawn."""
    network, optimizer = start()
    parameters = dict(network.named_parameters())
    torch.manual_seed(5)
    torch.rand(3)
    save_checkpoint(tmp_path, parameters, optimizer, TrainingState((), 3))
    expected = torch.rand(4)
    torch.manual_seed(6)
    assert load_checkpoint(tmp_path, parameters, optimizer) == TrainingState((), 3)
    assert torch.equal(torch.rand(4), expected)


def test_a_weight_without_moments_is_kept_all_the_same(tmp_path: Path) -> None:
    """A weight that no batch has reached yet has no moments."""
    network, optimizer = start()
    parameters = dict(network.named_parameters())
    save_checkpoint(tmp_path, parameters, optimizer, TrainingState())
    other, restored = start(seed=1)
    load_checkpoint(tmp_path, dict(other.named_parameters()), restored)
    assert torch.equal(other.weight, network.weight)
    assert restored.state[other.weight] == {}


def test_the_last_state_is_replaced_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, optimizer = start()
    parameters = dict(network.named_parameters())
    train(network, optimizer, range(1))
    save_checkpoint(tmp_path, parameters, optimizer, TrainingState((0.25,)))
    kept = network.weight.detach().clone()
    train(network, optimizer, range(1, 2))

    def killed(tensors: object, path: Path, metadata: object) -> None:
        path.write_bytes(b"half a file")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("safetensors.torch.save_file", killed)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(tmp_path, parameters, optimizer, TrainingState((0.25, 0.5)))
    assert load_checkpoint(tmp_path, parameters, optimizer) == TrainingState((0.25,))
    assert torch.equal(network.weight, kept)
    save_checkpoint(tmp_path, parameters, optimizer, TrainingState((0.25, 0.75)))
    assert load_checkpoint(tmp_path, parameters, optimizer) == TrainingState((0.25, 0.75))
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.safetensors"]


def test_an_adapter_is_saved_in_half_precision_with_sorted_settings(tmp_path: Path) -> None:
    base = find_base(str(save_base(tmp_path, "bert")))
    recipe = settle(ADAPTER, base)
    model = start_model(label_splits().train.task, recipe, base, "cpu")
    out = tmp_path / "out"
    save_best(model, recipe, base, out)
    assert {path.name for path in out.iterdir()} == {"adapter_config.json", ADAPTER_FILE}
    tensors = load_file(out / ADAPTER_FILE)
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    settings = json.loads((out / "adapter_config.json").read_text())
    assert settings["target_modules"] == ["dense", "key", "query", "value"]
    assert settings["modules_to_save"] == ["classifier", "score"]
    assert weights_facts(recipe, out) == {"adapter_sha256": file_sha256(out / ADAPTER_FILE)}


def test_a_whole_model_is_saved_with_the_tokenizer_of_its_base(tmp_path: Path) -> None:
    base = find_base(str(save_base(tmp_path, "bert")))
    recipe = replace(WHOLE, max_tokens=8)
    model = start_model(label_splits().train.task, recipe, base, "cpu")
    out = tmp_path / "out"
    save_best(model, recipe, base, out)
    saved = load_file(out / WHOLE_FILE)
    assert torch.equal(saved["classifier.weight"], model.network.classifier.weight)
    settings = json.loads((out / "tokenizer_config.json").read_text())
    assert settings["model_max_length"] == 64, "the recipe cuts training texts only"
    assert not {"name_or_path", "vocab_file"} & set(settings)
    assert weights_facts(recipe, out) == {"weights_sha256": file_sha256(out / WHOLE_FILE)}


def start(seed: int = 0, amsgrad: bool = False) -> tuple[torch.nn.Linear, torch.optim.AdamW]:
    torch.manual_seed(seed)
    network = torch.nn.Linear(3, 2)
    return network, torch.optim.AdamW(network.parameters(), lr=0.1, amsgrad=amsgrad)


def train(network: torch.nn.Linear, optimizer: torch.optim.AdamW, steps: range) -> None:
    for step in steps:
        draw = torch.Generator().manual_seed(step)
        loss = network(torch.randn(4, 3, generator=draw)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
